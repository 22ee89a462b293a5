package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// The fleet of a soak of rotations, and the add-on in it.
const (
	rotatingCluster = "rotating"
	rotatingAddon   = "hello"
	// lifetime is that of all certificates.
	lifetime = time.Minute
	// outage of every period the hub is away: a fifth.
	outage, period = 6 * time.Second, 30 * time.Second
	// life is how long an agent lives on average.
	life = 20 * time.Second
)

// RotationOptions says how long and with what a soak of rotations runs.
type RotationOptions struct {
	// Duration is how long the client reads.
	Duration time.Duration
	// Seed decides when the agent dies and when the hub goes away.
	Seed uint64
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Dir receives logs and data, as in fleet.Options; empty means a temporary directory.
	Dir string
	// Samples receives what the programs use, as in fleet.Options; empty means nothing.
	Samples string
	// Log receives what happens; nil drops it.
	Log io.Writer
}

// RotationReport holds what a soak of rotations measured.
type RotationReport struct {
	// Reads counts the reads of the client: all, and those that fell into an outage, which hold on or fail.
	Reads, ReadsInOutage int
	// Violations are reads that failed though the hub was there, and certificates that had expired; none is expected.
	Violations []string
	// AddonCertificates and ClusterCertificates count the certificates that were seen in use.
	AddonCertificates, ClusterCertificates int
	// AddonRequests and ClusterRequests count the certificate requests that the agents made.
	AddonRequests, ClusterRequests int
	// Least is the least lifetime that a certificate in use had left.
	Least time.Duration
	// Kills and Outages count the disturbances.
	Kills, Outages int
}

// Rotation runs a soak of rotations.
func Rotation(ctx context.Context, o RotationOptions) (RotationReport, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	f, err := fleet.New(ctx, fleet.Options{
		Clusters: []string{rotatingCluster}, Binaries: o.Binaries, Dir: o.Dir, SigningDuration: lifetime, Link: true,
		Samples: o.Samples, Log: o.Log,
	})
	if err != nil {
		return RotationReport{}, err
	}
	report, err := rotate(ctx, f, o)
	return report, errors.Join(err, f.Close())
}

func rotate(ctx context.Context, f *fleet.Fleet, o RotationOptions) (RotationReport, error) {
	cluster := f.Cluster(rotatingCluster)
	if err := prepare(ctx, f, cluster); err != nil {
		return RotationReport{}, err
	}
	r := &rotation{
		fleet: f, cluster: cluster, log: o.Log, report: RotationReport{Least: lifetime}, requests: map[types.UID]bool{},
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithTimeout(ctx, o.Duration)
	defer stop()
	random := rand.New(rand.NewPCG(o.Seed, 1))
	kills, outages := plan(random, life/2, life, o.Duration), plan(random, period-outage, 0, o.Duration)
	group.Go(func() error { return r.read(ctx) })
	group.Go(func() error { return r.kill(ctx, kills) })
	group.Go(func() error { return r.cut(ctx, outages) })
	group.Go(func() error {
		fleet.Follow(ctx, f.HubClient, &certificatesv1.CertificateSigningRequestList{}, r.request, r.ownRequests())
		return nil
	})
	if err := group.Wait(); err != nil {
		return r.report, err
	}
	err := r.countRequests(context.WithoutCancel(ctx))
	return r.report, err
}

// plan returns pauses of at least a length and up to a spread more, until they fill a duration.
func plan(random *rand.Rand, least, spread, whole time.Duration) []time.Duration {
	var pauses []time.Duration
	for sum := time.Duration(0); sum < whole; {
		pause := least
		if spread > 0 {
			pause += time.Duration(random.Int64N(int64(spread)))
		}
		pauses, sum = append(pauses, pause), sum+pause
	}
	return pauses
}

// prepare brings everything up, until the add-on has its first credential.
func prepare(ctx context.Context, f *fleet.Fleet, cluster *fleet.Cluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, errors.New("gave up after three minutes"))
	defer cancel()
	if err := f.InstallHub(ctx, nil); err != nil {
		return err
	}
	if err := f.StartAgent(ctx, cluster); err != nil {
		return err
	}
	if err := f.Accept(ctx, cluster.Name, map[string]string{"environment": "demo"}); err != nil {
		return err
	}
	if err := f.WaitAvailable(ctx, cluster, nil); err != nil {
		return err
	}
	if err := f.ApplySample(ctx, rotatingAddon); err != nil {
		return err
	}
	return fleet.Wait(ctx, "the credential of the add-on to work", nil, func(ctx context.Context) error {
		secret, err := credentialOf(ctx, cluster, names.NamespaceAgentAddon, rotatingAddon+"-hub-kubeconfig")
		if err != nil {
			return err
		}
		return useCredential(ctx, secret, cluster.Name)
	})
}

func credentialOf(ctx context.Context, cluster *fleet.Cluster, namespace, name string) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	return &secret, err
}

// ownRequests selects the certificate requests of the cluster.
func (r *rotation) ownRequests() client.ListOption {
	return client.MatchingLabels{names.LabelClusterName: r.cluster.Name}
}

// request notes a certificate request. It counts also when it is gone in the end: the controller manager deletes those
// whose certificate has expired.
func (r *rotation) request(_ watch.EventType, request *certificatesv1.CertificateSigningRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests[request.UID] {
		return
	}
	r.requests[request.UID] = true
	if _, _, addon := csr.Subject(request); addon {
		r.report.AddonRequests++
	} else {
		r.report.ClusterRequests++
	}
}

// countRequests notes the last requests, which the watch may not have told any more.
func (r *rotation) countRequests(ctx context.Context) error {
	var all certificatesv1.CertificateSigningRequestList
	if err := r.fleet.HubClient.List(ctx, &all, r.ownRequests()); err != nil {
		return fmt.Errorf("counting the certificate requests: %w", err)
	}
	for i := range all.Items {
		r.request(watch.Added, &all.Items[i])
	}
	return nil
}
