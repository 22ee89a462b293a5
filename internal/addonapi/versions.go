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

// firstLook and lastLook bound the pause between two questions which version the API server serves.
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

// Versions notices when the API server no longer serves the version of add-ons that is in use. A version that is gone
// ends no watch with an error that anybody but the watch sees, so Versions looks at what watches fail with:
// WatchError is the handler of watch errors of a cache, and Versions itself runs in a manager. Without such errors it
// asks nothing.
type Versions struct {
	// Wire is the version in use.
	Wire Wire
	// Detect asks the API server which version to use.
	Detect func() (Wire, error)
	// Changed is called when another version is to be used; it must not block. Versions ends with the error that it
	// returns, which may be nil.
	Changed func(now Wire) error
	// Missing is called when neither version could be found, with the reason, and when the one in use is there again, with
	// nil; it must not block. A hub whose definitions are being repaired is no reason to stop anything.
	Missing func(why error)
	// Clock tells the time; nil means the wall clock.
	Clock clock.Clock

	failed chan struct{}
}

// NewVersions returns Versions whose other fields are to be filled in.
func NewVersions() *Versions { return &Versions{failed: make(chan struct{}, 1)} }

// WatchError handles what a watch fails with as a cache does by itself, and notes it.
func (v *Versions) WatchError(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	v.Note(err)
}

// Note has the versions looked at when a watch failed with an error that says that one is not served.
func (v *Versions) Note(err error) {
	if isUnserved(err) {
		v.again()
	}
}

// isUnserved reports whether an error of a list or watch says that add-ons are not served in the version asked for.
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

// again asks for another look.
func (v *Versions) again() {
	select {
	case v.failed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a process that waits to lead must not lead with a
// version that is gone.
func (v *Versions) NeedLeaderElection() bool { return false }
