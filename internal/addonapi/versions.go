package addonapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/pause"
)

// firstDetect and lastDetect bound the pause between two detections of the served version.
const firstDetect, lastDetect = time.Second, time.Minute

// DetectAt is Detect for the API server of a configuration. httpClient may be nil.
func DetectAt(config *rest.Config, httpClient *http.Client) (Wire, error) {
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return "", err
		}
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return "", err
	}
	return Detect(mapper)
}

// Versions notices when the API server no longer serves the version of add-ons that is in use. Only watches fail when a
// version is gone, so Versions reads the errors of watches: WatchError is the handler of watch errors of a cache, and
// Versions itself runs in a manager. Without such errors it sends no request.
type Versions struct {
	// Wire is the version in use.
	Wire Wire
	// Detect returns the version to use with the API server.
	Detect func() (Wire, error)
	// Changed is called when another version must be used; it must not block. Versions ends with the error that it
	// returns, which may be nil.
	Changed func(now Wire) error
	// Missing is called with an error when neither version is served, and with nil when the version in use is served
	// again; it must not block. A hub whose definitions are being repaired is not a reason to stop.
	Missing func(why error)
	// Clock is the clock; nil means the real clock.
	Clock clock.Clock

	failed chan struct{}
}

// NewVersions returns Versions without its exported fields, which the caller sets.
func NewVersions() *Versions { return &Versions{failed: make(chan struct{}, 1)} }

// WatchError handles the error of a watch as a cache does by default, and passes it to Note.
func (v *Versions) WatchError(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	v.Note(err)
}

// Note requests a detection if the error of a watch means that a version is not served.
func (v *Versions) Note(err error) {
	if isUnserved(err) {
		v.again()
	}
}

// isUnserved reports whether an error of a list or watch means that add-ons are not served in the requested version.
func isUnserved(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return true
	}
	group := status.Status().Details.Group
	return group == "" || group == addonv1alpha1.GroupName
}

// Start implements manager.Runnable.
func (v *Versions) Start(ctx context.Context) error {
	now := v.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	detections := pause.Growing{First: firstDetect, Last: lastDetect}
	missing, wait := false, firstDetect
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-v.failed:
		}
		wire, err := v.Detect()
		switch {
		case err == nil && wire != v.Wire:
			return v.Changed(wire)
		case err != nil:
			missing = true
			v.Missing(err)
		case missing:
			missing, wait = false, firstDetect
			v.Missing(nil)
		}
		timer := now.NewTimer(wait)
		wait = detections.Next(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		if missing {
			v.again()
		}
	}
}

// again requests another detection.
func (v *Versions) again() {
	select {
	case v.failed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a process that waits for leadership must not start with
// a version that is gone.
func (v *Versions) NeedLeaderElection() bool { return false }

// Managed reports whether the hub installs, configures and rolls out the add-on of a ClusterManagementAddOn in any
// version. It does without the life-cycle
// annotation, with "addon-manager", and with the empty value that older add-on frameworks wrote over "self"
// (docs/reference/hub.md, "Lifecycle").
func Managed(management metav1.Object) bool {
	switch management.GetAnnotations()[names.AnnotationLifecycle] {
	case "", "addon-manager":
		return true
	}
	return false
}
