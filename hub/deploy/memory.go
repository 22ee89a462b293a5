package deploy

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/hub/deploy/works"
)

// verified has, for each add-on whose works another version rendered, the records of works that this version renders
// the same. They are rendered once in the life of the process, and stay as they are on the hub.
type verified struct {
	mutex sync.Mutex
	sums  map[types.NamespacedName]works.Sum
}

// get returns the records that were verified; zero for none.
func (v *verified) get(key types.NamespacedName) works.Sum {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.sums[key]
}

// set remembers records; zero forgets them.
func (v *verified) set(key types.NamespacedName, sum works.Sum) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if sum == (works.Sum{}) {
		delete(v.sums, key)
		return
	}
	if v.sums == nil {
		v.sums = map[types.NamespacedName]works.Sum{}
	}
	v.sums[key] = sum
}

// namespaceError refuses the permissions of an add-on because a namespace is that of another cluster.
type namespaceError struct {
	namespace string
	error
}

// Unwrap returns why.
func (e *namespaceError) Unwrap() error { return e.error }

// refused has, for each add-on whose permissions were refused because a namespace is that of another cluster, the name
// of that namespace. No object says it; a new process asks again.
type refused struct {
	mutex sync.Mutex
	by    map[types.NamespacedName]string
}

// set remembers why permissions were refused; anything but a namespaceError forgets it.
func (r *refused) set(key types.NamespacedName, why error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var of *namespaceError
	if !errors.As(why, &of) {
		delete(r.by, key)
		return
	}
	if r.by == nil {
		r.by = map[types.NamespacedName]string{}
	}
	r.by[key] = of.namespace
}

// requests returns a request for each add-on that a namespace keeps from its permissions.
func (r *refused) requests(namespace string) []ctrl.Request {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var all []ctrl.Request
	for key, by := range r.by {
		if by == namespace {
			all = append(all, ctrl.Request{NamespacedName: key})
		}
	}
	return all
}
