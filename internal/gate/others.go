package gate

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/decode"
)

// Others is what the add-ons on a cluster mean for one that goes from it.
type Others struct {
	// Bring are those that bring it along, and Hold those that it goes after, by name.
	Bring, Hold []string
}

// Others asks for each add-on that depends on one whether it is on the cluster, too. read returns nil for one that is
// not there; one that cannot be decoded is there.
func (o Order) Others(key types.NamespacedName, read func(types.NamespacedName) (client.Object, error)) (Others, error) {
	var all Others
	for _, d := range o.Dependents(key.Name) {
		there, err := read(types.NamespacedName{Namespace: key.Namespace, Name: d.Name})
		switch {
		case decode.IsUnknown(err):
			there = &metav1.PartialObjectMetadata{}
		case err != nil:
			return all, err
		case there == nil || reflect.ValueOf(there).IsNil():
			continue
		}
		stays := there.GetDeletionTimestamp().IsZero()
		if d.Installs && stays {
			all.Bring = append(all.Bring, d.Name)
		}
		if d.Holds(there) {
			all.Hold = append(all.Hold, d.Name)
		}
	}
	return all, nil
}

// Holds reports whether what depends on an add-on goes before it: always, or where it does without, while it goes.
func (d Dependent) Holds(there metav1.Object) bool {
	return !d.Optional || !there.GetDeletionTimestamp().IsZero()
}
