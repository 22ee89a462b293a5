package lies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/proxy"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// lifetime is that of certificates: some plays long.
	lifetime = 3 * time.Minute
	// grace is that of works that vanish from the hub.
	grace = 2 * time.Second
	// startPatience is how long the fleet may take to be there.
	startPatience = 4 * time.Minute
	// versionEvery is how often the version of an API server is read.
	versionEvery = 250 * time.Millisecond
	// toldWrites is how many requests a violation quotes.
	toldWrites = 6
)

// spoke is a managed cluster with its agent.
type spoke struct {
	*fleet.Cluster

	admin client.WithWatch
	// toHub and toOwn are the ways of the agent.
	toHub, toOwn *proxy.Proxy
}

// stage is a fleet whose programs see its API servers through proxies.
type stage struct {
	Options

	fleet *fleet.Fleet
	hub   client.WithWatch
	// toHub is the way of the hub manager.
	toHub  *proxy.Proxy
	spokes []*spoke
	judge  *judge
	keeper keeper

	followers sync.WaitGroup
	stop      context.CancelFunc
}

// open starts a fleet.
func open(ctx context.Context, o Options) (*stage, error) {
	options := fleet.Options{
		Binaries: o.Binaries, Dir: o.Dir, FrontProxy: true, SigningDuration: lifetime, Samples: o.Samples,
		Log: o.Log,
	}
	for i := range o.Clusters {
		options.Clusters = append(options.Clusters, clusterName(i))
	}
	f, err := fleet.New(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &stage{Options: o, fleet: f, judge: newJudge()}
	s.judge.who, s.judge.deployment = s.who, s.deployment
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	within, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("gave up after %s", startPatience))
	defer cancel()
	if err := s.start(within, following); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the fleet: %w", err), s.close())
	}
	return s, nil
}

// close ends the fleet.
func (s *stage) close() error {
	s.stop()
	s.followers.Wait()
	var errs []error
	for _, p := range s.proxies() {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, s.fleet.Close())...)
}

// start places the proxies and starts everything behind them.
func (s *stage) start(ctx, following context.Context) error {
	var err error
	if s.toHub, err = proxy.New(s.fleet.Hub); err != nil {
		return err
	}
	s.fleet.Host = s.toHub.Host
	if s.hub, err = adminOf(s.fleet.Hub); err != nil {
		return err
	}
	for _, cluster := range s.fleet.Clusters() {
		one := &spoke{Cluster: cluster}
		s.spokes = append(s.spokes, one)
		if one.admin, err = adminOf(cluster.ControlPlane); err != nil {
			return err
		}
		if one.toHub, err = proxy.New(s.fleet.Hub); err != nil {
			return err
		}
		if one.toOwn, err = proxy.New(cluster.ControlPlane); err != nil {
			return err
		}
		cluster.HubHost, cluster.Host = one.toHub.Host, one.toOwn.Host
	}
	if err := s.fleet.InstallHub(ctx, nil); err != nil {
		return err
	}
	for _, o := range stageObjects() {
		if err := s.hub.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	s.follow(following)
	if err := s.join(ctx); err != nil {
		return err
	}
	s.keeper.says(true)
	s.followers.Go(func() { s.keeper.keep(following, s.programs, s.judge.ended) })
	return nil
}

// programs returns the programs that must run.
func (s *stage) programs() []*sandbox.Process {
	all := []*sandbox.Process{s.fleet.HubManager()}
	for _, one := range s.spokes {
		all = append(all, one.Agent)
	}
	return all
}

// join starts the agents.
func (s *stage) join(ctx context.Context) error {
	for i, one := range s.spokes {
		missing := []string{"hold", "grace"}[i%2]
		err := s.fleet.StartAgent(ctx, one.Cluster, "--appliedmanifestwork-eviction-grace-period="+grace.String(),
			"--evict-missing-works="+missing)
		if err != nil {
			return err
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}
		if err := one.admin.Create(ctx, ns); err != nil {
			return fmt.Errorf("creating namespace %s: %w", space, err)
		}
	}
	for _, one := range s.spokes {
		if err := s.fleet.Accept(ctx, one.Name, nil); err != nil {
			return err
		}
	}
	for _, one := range s.spokes {
		if err := s.fleet.WaitAvailable(ctx, one.Cluster, nil); err != nil {
			return err
		}
	}
	return nil
}

func adminOf(plane *sandbox.ControlPlane) (client.WithWatch, error) {
	c, err := client.NewWithWatch(plane.Admin(), client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("building the client of %s: %w", plane.Name, err)
	}
	return c, nil
}

// proxies returns the ways of all programs.
func (s *stage) proxies() []*proxy.Proxy {
	all := []*proxy.Proxy{s.toHub}
	for _, one := range s.spokes {
		all = append(all, one.toHub, one.toOwn)
	}
	return all
}

// follow lets the judge see the API servers, plays the kubelets, and tells the proxies the versions.
func (s *stage) follow(ctx context.Context) {
	run := func(f func()) { s.followers.Go(f) }
	run(func() { fleet.Follow(ctx, s.hub, &addonv1alpha1.ManagedClusterAddOnList{}, s.judge.addOn) })
	run(func() { fleet.Follow(ctx, s.hub, &certificatesv1.CertificateSigningRequestList{}, s.judge.request) })
	run(func() {
		fleet.Follow(ctx, s.hub, &workv1.ManifestWorkList{}, func(kind watch.EventType, o *workv1.ManifestWork) {
			s.judge.work(ctx, kind, o)
		})
	})
	ways := []*proxy.Proxy{s.toHub}
	for _, one := range s.spokes {
		ways = append(ways, one.toHub)
		run(func() { tellVersions(ctx, one.admin, one.toOwn) })
		run(func() {
			fleet.Follow(ctx, one.admin, &appsv1.DeploymentList{}, func(kind watch.EventType, o *appsv1.Deployment) {
				s.judge.workload(kind, one.Name, o)
			})
		})
		run(func() {
			fleet.Follow(ctx, one.admin, &batchv1.JobList{}, func(_ watch.EventType, o *batchv1.Job) {
				s.judge.hook(one.Name, o)
			})
		})
		run(func() {
			fleet.Follow(ctx, one.admin, &corev1.ConfigMapList{}, func(kind watch.EventType, o *corev1.ConfigMap) {
				s.judge.configMap(kind, one.Name, o)
			}, client.InNamespace(space))
		})
		run(func() {
			fleet.Follow(ctx, one.admin, &corev1.PodList{}, func(kind watch.EventType, o *corev1.Pod) {
				if kind != watch.Deleted {
					one.runPod(ctx, o)
				}
			})
		})
	}
	run(func() { tellVersions(ctx, s.hub, ways...) })
}

// tellVersions tells proxies the version of an API server as time goes by.
func tellVersions(ctx context.Context, c client.Client, to ...*proxy.Proxy) {
	for fleet.Pause(ctx, versionEvery) {
		var list corev1.NodeList
		if err := c.List(ctx, &list, client.Limit(1)); err != nil {
			continue
		}
		for _, one := range to {
			one.Saw(list.ResourceVersion)
		}
	}
}

// runPod plays the kubelet: a pod runs at once, unless its image is bad, and that of a hook ends.
func (s *spoke) runPod(ctx context.Context, pod *corev1.Pod) {
	image := pod.Spec.Containers[0].Image
	for pod.Status.Phase == corev1.PodPending && !isBad(image) {
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if strings.HasPrefix(image, done) {
			pod.Status.Phase, pod.Status.Conditions = corev1.PodSucceeded, nil
		}
		err := s.admin.Status().Update(ctx, pod)
		if err == nil || apierrors.IsNotFound(err) || !fleet.Pause(ctx, versionEvery) {
			return
		}
		if err := s.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return // it is gone
		}
	}
}

// spoke returns a cluster by its name; nil for another one.
func (s *stage) spoke(name string) *spoke {
	for _, one := range s.spokes {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// deployment reads the Deployment of an add-on; nil when there is none.
func (s *stage) deployment(ctx context.Context, p pair) *appsv1.Deployment {
	one := s.spoke(p.cluster)
	var d appsv1.Deployment
	if one == nil {
		return nil
	}
	if err := one.admin.Get(ctx, client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: p.addOn}, &d); err != nil {
		return nil
	}
	return &d
}

// who tells which programs wrote to an object that a violation is about.
func (s *stage) who(cluster, name string) []string {
	ways := []*proxy.Proxy{s.toHub}
	if one := s.spoke(cluster); one != nil {
		ways = append(ways, one.toHub, one.toOwn)
	}
	var told []string
	for _, way := range ways {
		for _, one := range way.Writes() {
			ofOthers := strings.Contains(one.Path, "/namespaces/") && !strings.Contains(one.Path, "/"+cluster+"/")
			if strings.Contains(one.Path, name) && (way != s.toHub || !ofOthers) {
				told = append(told, fmt.Sprintf("%s %s %s %d by %s", one.At.UTC().Format("15:04:05.000"), one.Method, one.Path,
					one.Code, one.Client))
			}
		}
	}
	slices.Sort(told) // by their time
	return told[max(0, len(told)-toldWrites):]
}
