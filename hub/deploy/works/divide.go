package works

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// Side is the cluster that a work is for.
type Side string

const (
	// Managed is the managed cluster of the add-on.
	Managed Side = "managed"
	// Hosting is the cluster that hosts the agent of the add-on.
	Hosting Side = "hosting"

	// nowhere is the location of an object that hosted mode does not deploy.
	nowhere = "none"
)

// Divided are the objects of an add-on by side and purpose.
type Divided struct {
	// Deploy are the objects that are applied while the add-on lives.
	Deploy map[Side][]Manifest
	// Hooks are the objects that run when the add-on is deleted.
	Hooks map[Side][]Manifest
}

// Divide encodes the objects of an add-on and divides them. In default mode, all of them are for the managed cluster.
// In hosted mode, each object names its side; the managed cluster is the default. The error is an addon.InvalidError
// that lists all objects that cannot be deployed.
func Divide(objects []*unstructured.Unstructured, hosted bool) (Divided, error) {
	d := Divided{Deploy: map[Side][]Manifest{}, Hooks: map[Side][]Manifest{}}
	var problems []string
	sizes := map[Side]int{}
	for i, object := range objects {
		m, err := encode(object, i)
		side, isPlace := Managed, true
		if hosted {
			side, isPlace = location(object)
		}
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case !isPlace:
			problems = append(problems, fmt.Sprintf("%s has location %q (%s), which must be %s, %s or %s", m.Identity, side,
				names.AnnotationHostedLocation, Managed, Hosting, nowhere))
		case side == nowhere:
		case len(m.Raw) > MaxBytes:
			problems = append(problems, fmt.Sprintf("%s has %d bytes, and a ManifestWork takes no more than %d: make it "+
				"smaller or split it", m.Identity, len(m.Raw), MaxBytes))
		case m.Terms != nil:
			d.Hooks[side] = append(d.Hooks[side], m)
			sizes[side] += len(m.Raw)
		default:
			d.Deploy[side] = append(d.Deploy[side], m)
		}
	}
	for _, side := range []Side{Managed, Hosting} {
		if sizes[side] > MaxBytes {
			problems = append(problems, fmt.Sprintf("the pre-delete hooks for the %s cluster have %d bytes, and their one "+
				"ManifestWork takes no more than %d: make them smaller", side, sizes[side], MaxBytes))
		}
	}
	if len(problems) > 0 {
		return Divided{}, &addon.InvalidError{Message: strings.Join(problems, "; ")}
	}
	return d, nil
}

// IsHosted reports whether an object is for the hosting cluster in hosted mode.
func IsHosted(object *unstructured.Unstructured) bool {
	side, _ := location(object)
	return side == Hosting
}

// location returns the side of an object in hosted mode, from its annotation or else from its label. False means that
// the value is none of the known ones.
func location(object *unstructured.Unstructured) (Side, bool) {
	value, stated := object.GetAnnotations()[names.AnnotationHostedLocation]
	if !stated {
		value, stated = object.GetLabels()[names.AnnotationHostedLocation]
	}
	if !stated {
		return Managed, true
	}
	side := Side(value)
	return side, side == Managed || side == Hosting || side == nowhere
}

// MaxBytes is the limit for the manifests of one of our ManifestWorks, in bytes (docs/reference/hub.md, "Splitting into
// works"): four fifths of the limit of the API.
const MaxBytes = addon.MaxManifestBytes

// maxAPIBytes is how much the admission of OCM takes for the manifests of one ManifestWork, in bytes. A work that holds
// objects for another one may use it.
const maxAPIBytes = MaxBytes / 4 * 5

// key returns the key of a rendering for Fingerprint, from its content: it is known only after the rendering.
func (d Divided) key(options []workv1.ManifestConfigOption) string {
	sum := sha256.New()
	for _, of := range []map[Side][]Manifest{d.Deploy, d.Hooks} {
		for _, side := range []Side{Managed, Hosting} {
			_, _ = sum.Write([]byte(side))
			for _, m := range of[side] {
				_, _ = sum.Write(m.sum[:])
			}
		}
	}
	if raw, err := json.Marshal(options); err == nil {
		_, _ = sum.Write(raw)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
