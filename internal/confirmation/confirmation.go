// Package confirmation names what a person confirms: one list, so that a confirmation counts for what the person saw
// and for nothing else, whenever it was written.
package confirmation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// length is how many bytes of a hash are a name: few enough to be copied by hand.
const length = 6

// Name returns a short name of a list that belongs to an owner. Its items are in order and have no slash at a place
// where another list may have the border of two items.
func Name(owner string, items []string) string {
	sum := sha256.Sum256([]byte(owner + "/" + strings.Join(items, "/")))
	return hex.EncodeToString(sum[:length])
}
