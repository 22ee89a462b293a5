package addonapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// firstLook and lastLook bound the delay between two detections.
const firstLook, lastLook = time.Second, time.Minute

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

// Versions detects that the API server no longer serves the API version of add-ons that is in use. Only watch errors
// show that, so WatchError is the watch error handler of a cache, and Versions itself runs in a manager. Without such
// errors it sends no requests.
type Versions struct {
	// Wire is the version in use.
	Wire Wire
	// Detect returns the version to use.
	Detect func() (Wire, error)
	// Changed is called when another version must be used; it must not block. Versions ends with its error, which may be
	// nil.
	Changed func(now Wire) error
	// Missing is called with the reason when neither version is served, and with nil when the one in use is served again;
	// it must not block. Definitions that are being repaired are no reason to stop.
	Missing func(why error)
	// Clock tells the time; nil means the wall clock.
	Clock clock.Clock

	failed chan struct{}
}

// NewVersions returns Versions without its exported fields.
func NewVersions() *Versions { return &Versions{failed: make(chan struct{}, 1)} }

// WatchError handles a watch error like the default handler, and notes it.
func (v *Versions) WatchError(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	v.Note(err)
}

// Note triggers a detection if the error of a watch means that a version is not served.
func (v *Versions) Note(err error) {
	if isUnserved(err) {
		v.again()
	}
}

// isUnserved reports whether the error of a list or watch means that the requested version of add-ons is not served.
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
	missing, pause := false, firstLook
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
			missing, pause = false, firstLook
			v.Missing(nil)
		}
		timer := now.NewTimer(pause)
		pause = min(2*pause, lastLook)
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

// again triggers another detection.
func (v *Versions) again() {
	select {
	case v.failed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection returns false: a process that waits to lead must not lead with a version that is gone.
func (v *Versions) NeedLeaderElection() bool { return false }
