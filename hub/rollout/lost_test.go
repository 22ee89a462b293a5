package rollout

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/names"
)

// The add-on is gone everywhere, with its ClusterManagementAddOn. A content of it was lost before.
func TestALostContentOfAnAddOnThatIsGoneIsNotStored(t *testing.T) {
	c := hubOf(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("exceeded quota")
		},
	})
	store := &addonconfig.Store{Client: c, Home: "home"}
	store.Lost(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "home", Name: "hello-1", Labels: map[string]string{names.LabelAddonName: "hello", names.LabelConfigRevision: "true"},
	}})
	r := &Reconciler{AddOns: addonapi.Client{Client: c}, Client: c, Store: store, Clock: clock.RealClock{}}
	for range 3 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}})
		assert.NoError(t, err, "what is not needed is neither stored nor told each minute")
	}
}
