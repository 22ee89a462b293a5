package offline

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
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
//	"spkwork"  version (1 byte)  length of the header (4 bytes)  header (JSON)  nonce (12 bytes)  encrypted parts
//
// AES-GCM authenticates everything before the nonce with the parts, so that no file passes for that of another hub,
// cluster, work or generation. The parts, each after its length, are the work without its manifests as JSON, and every
// manifest with the very bytes that the hub sent, because the desired hash of an object is a hash of these bytes.
const (
	magic         = "spkwork"
	formatVersion = 1
	// fixedSize is the length of all that precedes the header, in bytes.
	fixedSize = len(magic) + 1 + 4
	// maxFile is the largest file that the store reads or writes, in bytes. No work in an API server comes near.
	maxFile = 8 << 20
	// maxHeader is the longest header, in bytes.
	maxHeader = 8 << 10
	// keySize is the length of the key, in bytes, which makes it AES-256.
	keySize = 32
)

// header identifies the work of a copy. It is not encrypted.
type header struct {
	Hub     string `json:"hub"`
	Cluster string `json:"cluster"`
	Work    string `json:"work"`
	// UID and Generation are those of the work, Applied is the UID of its AppliedManifestWork.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	Applied    types.UID `json:"applied"`
	// Stamp is a hash of the rest of the copy that may change without a new generation: labels and status.
	Stamp string `json:"stamp"`
	// Unreported means that passes without the hub concluded the status of the copy, and that the hub does not have it.
	Unreported bool `json:"learned,omitempty"`
}

// body is the first part of a copy.
type body struct {
	Labels map[string]string         `json:"labels,omitempty"`
	Spec   workv1.ManifestWorkSpec   `json:"spec"`
	Status workv1.ManifestWorkStatus `json:"status"`
}

// errNewerCopy means that a later version of the agent wrote the file.
var errNewerCopy = errors.New("it is of a newer format")

// newAEAD returns the cipher of a key.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("the key has %d bytes, not %d", len(key), keySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// reduceStatus returns the part of the status of a work that decides how its objects are treated: which manifests are
// applied, and which are complete.
func reduceStatus(status *workv1.ManifestWorkStatus) workv1.ManifestWorkStatus {
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

// headerOf returns the header of the copy of a work whose status is reduced.
func (s *Store) headerOf(work *workv1.ManifestWork, applied types.UID) header {
	return header{
		Hub: s.HubHash, Cluster: s.Cluster, Work: work.Name, UID: work.UID, Generation: work.Generation, Applied: applied,
		Stamp: stampOf(work),
	}
}

// stampOf is a hash of the labels and the status of a work.
func stampOf(work *workv1.ManifestWork) string {
	raw, _ := json.Marshal([]any{work.Labels, work.Status}) // these types are always JSON
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// encode returns the file of a work whose status is reduced.
func encode(aead cipher.AEAD, head header, work *workv1.ManifestWork) ([]byte, error) {
	headJSON, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encoding the header: %w", err)
	}
	content := body{Labels: work.Labels, Spec: work.Spec, Status: work.Status}
	content.Spec.Workload.Manifests = nil
	first, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the work: %w", err)
	}
	plain := appendPart(nil, first)
	for i := range work.Spec.Workload.Manifests {
		plain = appendPart(plain, work.Spec.Workload.Manifests[i].Raw)
	}
	headSize := len(headJSON)
	size := fixedSize + headSize + len(plain) + aead.Overhead()
	if size > maxFile || headSize > maxHeader {
		return nil, fmt.Errorf("it has %d bytes, more than a copy may have", size)
	}
	file := append([]byte(magic), formatVersion)
	file = binary.BigEndian.AppendUint32(file, uint32(headSize))
	file = append(file, headJSON...)
	return append(file, aead.Seal(nil, nil, plain, bytes.Clone(file))...), nil
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
	rest = from[n:]
	return rest[:size], rest[size:], nil
}

// readHeader reads the header at the beginning of a file, and returns the length of all up to its end. It authenticates
// nothing.
func readHeader(file []byte) (header, int, error) {
	if len(file) < fixedSize || string(file[:len(magic)]) != magic {
		return header{}, 0, errors.New("it is no copy of a work")
	}
	switch version := file[len(magic)]; {
	case version > formatVersion:
		return header{}, 0, errNewerCopy
	case version != formatVersion:
		return header{}, 0, fmt.Errorf("it is of the unknown format %d", version)
	}
	size := int(binary.BigEndian.Uint32(file[len(magic)+1:]))
	if size > maxHeader || size > len(file)-fixedSize {
		return header{}, 0, errors.New("its header is cut off")
	}
	var head header
	if err := json.Unmarshal(file[fixedSize:fixedSize+size], &head); err != nil {
		return header{}, 0, fmt.Errorf("its header cannot be read: %w", err)
	}
	return head, fixedSize + size, nil
}

// decode reads the file of a work. The key authenticates the work and the header.
func decode(aead cipher.AEAD, file []byte) (header, *workv1.ManifestWork, error) {
	if len(file) > maxFile {
		return header{}, nil, fmt.Errorf("it has %d bytes, more than a copy may have", len(file))
	}
	head, end, err := readHeader(file)
	if err != nil {
		return header{}, nil, err
	}
	plain, err := aead.Open(nil, nil, file[end:], file[:end])
	if err != nil {
		return header{}, nil, fmt.Errorf("it is damaged, or of another key: %w", err)
	}
	first, rest, err := cutPart(plain)
	if err != nil {
		return header{}, nil, err
	}
	var content body
	if err := json.Unmarshal(first, &content); err != nil {
		return header{}, nil, fmt.Errorf("its work cannot be read: %w", err)
	}
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: head.Cluster, Name: head.Work, UID: head.UID, Generation: head.Generation, Labels: content.Labels,
		},
		Spec: content.Spec, Status: content.Status,
	}
	for len(rest) > 0 {
		var raw []byte
		if raw, rest, err = cutPart(rest); err != nil {
			return header{}, nil, err
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return head, work, nil
}
