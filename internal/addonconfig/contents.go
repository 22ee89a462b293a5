package addonconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
)

// Contents say what a rollout gave an add-on: a digest of its configurations of each kind, by a digest of the kind. Of
// a kind that the spec of the add-on itself names, it is what the rollout would give in its place, and marked. As a
// text they fit into the message of a condition, whatever names and hashes the configurations have.
type Contents map[string]string

// ContentsOf returns the contents of references, none of which is of the spec of the add-on itself.
func ContentsOf(references []addonv1beta1.ConfigReference) Contents {
	kinds := map[string][]string{}
	for _, reference := range references {
		key, kind := "", kindOf(reference.ConfigGroupResource)
		if desired := reference.DesiredConfig; desired != nil {
			key = confighash.Key(reference.ConfigGroupResource, desired.ConfigReferent) + "@" + desired.SpecHash
		}
		kinds[kind] = append(kinds[kind], key)
	}
	contents := make(Contents, len(kinds))
	for kind, keys := range kinds {
		inOrder := digest(strings.Join(keys, "\n"), 16)
		if contents[kind] = inOrder; len(keys) > 1 { // One of them counts, by its place.
			slices.Sort(keys)
			contents[kind] = inOrder + ordered + digest(strings.Join(keys, "\n"), 16)
		}
	}
	return contents
}

// ordered is between two digests of several configurations of a kind: in their order, and sorted. Earlier versions
// noted the latter alone.
const ordered = "~"

// sameContent reports whether what was noted of a kind, by this version or an earlier one, is what it has now.
func sameContent(noted, now string) bool {
	_, sorted, several := strings.Cut(now, ordered)
	return noted == now || several && noted == sorted
}

// Given returns the contents that an add-on has and does not name itself.
func Given(addOn *addonv1beta1.ManagedClusterAddOn) Contents {
	own := func(r addonv1beta1.ConfigReference) bool {
		return slices.ContainsFunc(addOn.Spec.Configs, func(c addonv1beta1.AddOnConfig) bool {
			return c.ConfigGroupResource == r.ConfigGroupResource
		})
	}
	return ContentsOf(slices.DeleteFunc(slices.Clone(addOn.Status.ConfigReferences), own))
}

// Has reports whether contents have the same of a kind as others, and any of it.
func (c Contents) Has(kind addonv1beta1.ConfigGroupResource, others Contents) bool {
	content, has := c[kindOf(kind)]
	return has && content == others[kindOf(kind)]
}

func kindOf(resource addonv1beta1.ConfigGroupResource) string {
	return digest(resource.Group+"/"+resource.Resource, 8)
}

// digest returns the first hexadecimal digits of the SHA-256 of a text.
func digest(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// String returns the text that ReadContents reads at the end of a message.
func (c Contents) String() string {
	all := make([]string, 0, len(c))
	for kind, content := range c {
		all = append(all, kind+"-"+content)
	}
	slices.Sort(all)
	return "[" + strings.Join(all, " ") + "]"
}

// ReadContents returns the contents at the end of a message; nil where there are none.
func ReadContents(message string) Contents {
	text, found := strings.CutSuffix(message, "]")
	begin := strings.LastIndex(text, "[")
	if !found || begin < 0 {
		return nil
	}
	contents := Contents{}
	for _, one := range strings.Fields(text[begin+1:]) {
		kind, content, found := strings.Cut(one, "-")
		if !found {
			return nil
		}
		contents[kind] = content
	}
	return contents
}

// HasOwn reports whether the spec of the add-on itself names a configuration.
func (t Target) HasOwn() bool { return len(ownKinds(t.Desired)) > 0 }

// own ends the content of a kind that the spec of the add-on itself names.
const own = "+"

// never precedes own where the add-on never had what the rollout would give in its place.
const never = "!"

// Contents returns the contents of references, which are those of the target or those that the add-on has.
func (t Target) Contents(references []addonv1beta1.ConfigReference) Contents {
	kinds := ownKinds(t.Desired)
	rolled := slices.Clone(t.beneath)
	for _, reference := range references {
		if !kinds[reference.ConfigGroupResource] {
			rolled = append(rolled, reference)
		}
	}
	contents := ContentsOf(rolled)
	for kind := range kinds {
		contents[kindOf(kind)] += own
	}
	return contents
}

// Gives reports whether contents are those of the target. See Same.
func (t Target) Gives(contents Contents) bool { return t.Same(contents, t.References) }

// Same reports whether contents are those of references, which are those of the target or those that the add-on has. A
// kind does not count that the spec of the add-on itself names, and named then: what the rollout gives in its place
// does not reach the cluster. Unknown contents are never the same.
func (t Target) Same(contents Contents, references []addonv1beta1.ConfigReference) bool {
	if contents == nil { // as of nearly all add-ons
		return false
	}
	has := t.Contents(references)
	for kind := range contents {
		has[kind] += "" // A kind that is there no more is compared, too.
	}
	for kind, content := range has {
		then, ownThen := strings.CutSuffix(contents[kind], own)
		now, ownNow := strings.CutSuffix(content, own)
		then = strings.TrimSuffix(then, never)
		if !sameContent(then, now) && (!ownThen || !ownNow) {
			return false
		}
	}
	return true
}

// GivesAll reports whether contents are those of the target, and of what the rollout would give in the place of what
// the spec of the add-on itself names.
func (t Target) GivesAll(contents Contents) bool {
	if contents == nil {
		return false
	}
	gives := t.Contents(t.References)
	for kind := range contents {
		gives[kind] += "" // A kind that is there no more is compared, too.
	}
	for kind, content := range gives {
		if !sameContent(strings.TrimSuffix(contents[kind], own), strings.TrimSuffix(content, own)) {
			return false
		}
	}
	return true
}

// Noted returns the contents of references for an add-on that had references and was noted with contents before, which
// were complete or not: those of Contents, with a mark where it was never complete with what the rollout would give.
func (t Target) Noted(before Contents, complete bool, had, references []addonv1beta1.ConfigReference) Contents {
	contents, has := t.Contents(references), ContentsOf(applied(had))
	for kind, content := range contents {
		beneath, isOwn := strings.CutSuffix(content, own)
		then, ownThen := strings.CutSuffix(before[kind], own)
		same := sameContent(then, beneath)
		if isOwn && has[kind] != beneath && (ownThen || !same || !complete) && (!ownThen || !same) {
			contents[kind] = beneath + never + own
		}
	}
	return contents
}

// applied returns the references with what was applied of them.
func applied(references []addonv1beta1.ConfigReference) []addonv1beta1.ConfigReference {
	var all []addonv1beta1.ConfigReference
	for _, reference := range references {
		reference.DesiredConfig = reference.LastAppliedConfig
		all = append(all, reference)
	}
	return all
}

// GivesNew reports whether the rollout gives an add-on, which was noted with contents, something that it never had: its
// spec named another one of the kind until now.
func (t Target) GivesNew(noted Contents) bool {
	var now Contents
	for kind, content := range noted {
		if !strings.HasSuffix(content, never+own) {
			continue
		}
		if now == nil {
			now = t.Contents(t.References)
		}
		if !strings.HasSuffix(now[kind], own) {
			return true
		}
	}
	return false
}
