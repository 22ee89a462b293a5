package deploy

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

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
