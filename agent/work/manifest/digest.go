package manifest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
)

// Digest is a SHA-256; the zero Digest means none.
type Digest [sha256.Size]byte

// DigestOf digests a value as JSON; maps digest the same in any order. An empty value has the zero Digest.
func DigestOf(value any) Digest {
	raw, err := json.Marshal(value)
	if err != nil || string(raw) == "null" {
		return Digest{}
	}
	return sha256.Sum256(raw)
}

// desiredDigest digests all that decides the desired state of an object: the bytes of the manifest, whether the work
// owns the object, and the update strategy.
func desiredDigest(m *Manifest, raw []byte) Digest {
	sum := sha256.New()
	writePart(sum, raw)
	writePart(sum, fmt.Append(nil, m.Options.Owned))
	strategy, _ := json.Marshal(m.Options.Strategy)
	writePart(sum, strategy)
	return Digest(sum.Sum(nil))
}

// writePart adds one part to a digest so that parts cannot run into each other.
func writePart(sum hash.Hash, part []byte) {
	_, _ = fmt.Fprintf(sum, "%d:", len(part))
	_, _ = sum.Write(part)
}
