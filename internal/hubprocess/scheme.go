package hubprocess

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
)

// NewScheme returns a scheme with all kinds that the reconcilers of a hub read or write.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var failed error
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install, clusterv1.Install,
		clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install,
	} {
		failed = errors.Join(failed, add(scheme))
	}
	if failed != nil {
		return nil, fmt.Errorf("building the scheme: %w", failed)
	}
	return scheme, nil
}
