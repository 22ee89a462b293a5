package work

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// A copy of a work is one file:
//
//	"spkwork"  version (1 byte)  length of the label (4 bytes)  label (JSON)  nonce (12 bytes)  sealed parts
//
// Everything before the nonce is authenticated with the parts, so that no file can pass for that of another hub,
// cluster, work or generation. The parts, each after its length, are the work without its manifests as JSON, and every
// manifest with the very bytes that the hub sent: what is applied is recognized by them.
const (
	copyMagic   = "spkwork"
	copyVersion = 1
	// copyFixed is what comes before the label, in bytes.
	copyFixed = len(copyMagic) + 1 + 4
	// maxCopy is the largest file that is read or written, in bytes; the API server takes no work that comes near.
	maxCopy = 8 << 20
	// maxCopyLabel is the longest label, in bytes.
	maxCopyLabel = 8 << 10
	// keySize is the length of the key, in bytes, which makes it AES-256.
	keySize = 32
)

// copyLabel says, for everybody to read, what a copy is of.
type copyLabel struct {
	Hub     string `json:"hub"`
	Cluster string `json:"cluster"`
	Work    string `json:"work"`
	// UID and Generation are those of the work, Applied is the UID of its AppliedManifestWork.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	Applied    types.UID `json:"applied"`
	// Stamp digests what else of the work is in the copy and may change without a new generation.
	Stamp string `json:"stamp"`
	// Learned tells that passes without the hub came to something that the hub has not been told yet.
	Learned bool `json:"learned,omitempty"`
}

// copyBody is the first part of a copy.
type copyBody struct {
	Labels map[string]string         `json:"labels,omitempty"`
	Spec   workv1.ManifestWorkSpec   `json:"spec"`
	Status workv1.ManifestWorkStatus `json:"status"`
}

// errNewerCopy says that a later version of the agent wrote the file.
var errNewerCopy = errors.New("it is of a newer format")

// newSeal returns what seals and opens copies with a key.
func newSeal(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("the key has %d bytes, not %d", len(key), keySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// essence is as much of the status of a work as decides how its objects are treated: what was applied, and what is
// complete.
func essence(status *workv1.ManifestWorkStatus) workv1.ManifestWorkStatus {
	keep := func(all []metav1.Condition, kinds ...string) []metav1.Condition {
		var kept []metav1.Condition
		for _, kind := range kinds {
			if c := meta.FindStatusCondition(all, kind); c != nil {
				kept = append(kept, metav1.Condition{
					Type: c.Type, Status: c.Status, Reason: c.Reason, ObservedGeneration: c.ObservedGeneration,
				})
			}
		}
		return kept
	}
	short := workv1.ManifestWorkStatus{Conditions: keep(status.Conditions, workv1.WorkComplete)}
	for i := range status.ResourceStatus.Manifests {
		m := &status.ResourceStatus.Manifests[i]
		short.ResourceStatus.Manifests = append(short.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: m.ResourceMeta,
			Conditions:   keep(m.Conditions, workv1.ManifestApplied, workv1.ManifestComplete),
		})
	}
	return short
}

// labelOf is the label of the copy of a work whose status is an essence.
func labelOf(hub, cluster string, work *workv1.ManifestWork, applied types.UID) copyLabel {
	return copyLabel{
		Hub: hub, Cluster: cluster, Work: work.Name, UID: work.UID, Generation: work.Generation, Applied: applied,
		Stamp: fmt.Sprintf("%x", digestOf([]any{work.Labels, work.Status})),
	}
}

// encodeCopy makes the file of a work whose status is an essence.
func encodeCopy(seal cipher.AEAD, label copyLabel, work *workv1.ManifestWork) ([]byte, error) {
	head, err := json.Marshal(label)
	if err != nil {
		return nil, fmt.Errorf("encoding the label: %w", err)
	}
	body := copyBody{Labels: work.Labels, Spec: work.Spec, Status: work.Status}
	body.Spec.Workload.Manifests = nil
	first, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the work: %w", err)
	}
	size := len(first) + binary.MaxVarintLen64
	for i := range work.Spec.Workload.Manifests {
		size += len(work.Spec.Workload.Manifests[i].Raw) + binary.MaxVarintLen64
	}
	if size > maxCopy-maxCopyLabel || len(head) > maxCopyLabel {
		return nil, fmt.Errorf("it has %d bytes, more than a copy may have", size)
	}
	plain := appendPart(make([]byte, 0, size), first)
	for i := range work.Spec.Workload.Manifests {
		plain = appendPart(plain, work.Spec.Workload.Manifests[i].Raw)
	}
	file := make([]byte, 0, copyFixed+len(head)+len(plain)+seal.Overhead())
	file = append(append(file, copyMagic...), copyVersion)
	file = binary.BigEndian.AppendUint32(file, uint32(len(head))) //nolint:gosec // checked above
	file = append(file, head...)
	return append(file, seal.Seal(nil, nil, plain, bytes.Clone(file))...), nil
}

// appendPart appends the length of a part and the part.
func appendPart(to, part []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(part))), part...)
}

// cutPart cuts the first part off.
func cutPart(from []byte) (part, rest []byte, err error) {
	size, n := binary.Uvarint(from)
	if n <= 0 || size > uint64(len(from[n:])) {
		return nil, nil, errors.New("it is cut off")
	}
	return from[n : n+int(size)], from[n+int(size):], nil //nolint:gosec // checked above
}

// readLabel reads the label at the beginning of a file and returns how long both are; it proves nothing.
func readLabel(file []byte) (copyLabel, int, error) {
	if len(file) < copyFixed || string(file[:len(copyMagic)]) != copyMagic {
		return copyLabel{}, 0, errors.New("it is no copy of a work")
	}
	switch version := file[len(copyMagic)]; {
	case version > copyVersion:
		return copyLabel{}, 0, errNewerCopy
	case version != copyVersion:
		return copyLabel{}, 0, fmt.Errorf("it is of the unknown format %d", version)
	}
	size := int(binary.BigEndian.Uint32(file[len(copyMagic)+1:]))
	if size > maxCopyLabel || size > len(file)-copyFixed {
		return copyLabel{}, 0, errors.New("its label is cut off")
	}
	var label copyLabel
	if err := json.Unmarshal(file[copyFixed:copyFixed+size], &label); err != nil {
		return copyLabel{}, 0, fmt.Errorf("its label cannot be read: %w", err)
	}
	return label, copyFixed + size, nil
}

// decodeCopy reads the file of a work. What it returns was written with the key, whole, and under this label.
func decodeCopy(seal cipher.AEAD, file []byte) (copyLabel, *workv1.ManifestWork, error) {
	if len(file) > maxCopy {
		return copyLabel{}, nil, fmt.Errorf("it has %d bytes, more than a copy may have", len(file))
	}
	label, end, err := readLabel(file)
	if err != nil {
		return copyLabel{}, nil, err
	}
	plain, err := seal.Open(nil, nil, file[end:], file[:end])
	if err != nil {
		return copyLabel{}, nil, fmt.Errorf("it is damaged, or of another key: %w", err)
	}
	first, rest, err := cutPart(plain)
	if err != nil {
		return copyLabel{}, nil, err
	}
	var body copyBody
	if err := json.Unmarshal(first, &body); err != nil {
		return copyLabel{}, nil, fmt.Errorf("its work cannot be read: %w", err)
	}
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: label.Cluster, Name: label.Work, UID: label.UID, Generation: label.Generation, Labels: body.Labels,
		},
		Spec: body.Spec, Status: body.Status,
	}
	for len(rest) > 0 {
		var raw []byte
		if raw, rest, err = cutPart(rest); err != nil {
			return copyLabel{}, nil, err
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return label, work, nil
}
