package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errTooLarge is the error of a single value of a review that is larger than any object.
var errTooLarge = errors.New("an object is larger than an API server takes")

// meter counts what is read for one value.
type meter struct {
	from io.Reader
	read int
}

// Read reads in small pieces, so that little is read beyond the end of a value.
func (m *meter) Read(p []byte) (int, error) {
	const piece = 64 << 10
	if m.read > maxObject {
		return 0, errTooLarge
	}
	n, err := m.from.Read(p[:min(len(p), piece)])
	m.read += n
	return n, err
}

// reviewReader reads a review and has its objects converted one by one, so that it never holds all of them.
type reviewReader struct {
	body *meter
	// batch converts one object.
	batch func(raw []byte, b *batch) error

	converted           batch
	uid                 types.UID
	version, kind       string
	requested, objected bool
	decoder             *json.Decoder
}

// read reads the whole review.
func (r *reviewReader) read() error {
	r.decoder = json.NewDecoder(r.body)
	err := r.each('{', func(name string) error {
		switch name {
		case inAPIVersion:
			return r.value(&r.version)
		case inKind:
			return r.value(&r.kind)
		case "request":
			r.requested = true
			return r.each('{', r.request)
		}
		return r.value(&json.RawMessage{})
	})
	if err != nil {
		return err
	}
	if r.kind != "ConversionReview" || r.version != apiextensionsv1.SchemeGroupVersion.String() {
		return fmt.Errorf("this is a %s of %s, not a ConversionReview of %s", r.kind, r.version,
			apiextensionsv1.SchemeGroupVersion)
	}
	return nil
}

// request reads one field of the request.
func (r *reviewReader) request(name string) error {
	switch name {
	case "uid":
		return r.value(&r.uid)
	case "desiredAPIVersion":
		if r.objected {
			return errors.New("desiredAPIVersion comes after the objects")
		}
		return r.value(&r.converted.desired)
	case "objects":
		r.objected = true
		return r.each('[', func(string) error {
			var raw json.RawMessage
			if err := r.value(&raw); err != nil {
				return err
			}
			return r.batch(raw, &r.converted)
		})
	}
	return r.value(&json.RawMessage{})
}

// each reads an object or a list, or null, and calls do for each field or element.
func (r *reviewReader) each(opening json.Delim, do func(name string) error) error {
	token, err := r.decoder.Token()
	if err != nil || token == nil {
		return err
	}
	if token != opening {
		return fmt.Errorf("%v is not what a ConversionReview has there", token)
	}
	for r.decoder.More() {
		name := ""
		if opening == '{' {
			r.body.read = 0
			token, err := r.decoder.Token()
			if err != nil {
				return err
			}
			name, _ = token.(string)
		}
		if err := do(name); err != nil {
			return err
		}
	}
	_, err = r.decoder.Token()
	return err
}

// value decodes the next value.
func (r *reviewReader) value(into any) error {
	r.body.read = 0
	return r.decoder.Decode(into)
}

// refusal returns why the review is refused; nil if it is not.
func (r *reviewReader) refusal() error {
	if !r.requested {
		return errors.New("the review carries no request")
	}
	return r.converted.refusal()
}

// writeAnswer writes a review with a response.
func writeAnswer(w io.Writer, uid types.UID, result metav1.Status, objects [][]byte) error {
	head, err := json.Marshal(metav1.TypeMeta{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview",
	})
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	id, err := json.Marshal(uid)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	status, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	parts := [][]byte{head[:len(head)-1], []byte(`,"response":{"uid":`), id, []byte(`,"convertedObjects":[`)}
	for i, object := range objects {
		if i > 0 {
			parts = append(parts, []byte(","))
		}
		parts = append(parts, object)
	}
	parts = append(parts, []byte(`],"result":`), status, []byte("}}\n"))
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
	}
	return nil
}
