package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// The sample add-on with a chart, and its program.
const (
	chartAddOn     = "weather"
	chartNamespace = "weather-central"
	chartAccount   = "weather-manager"
	// beside is how many times the time of a template an installation of a chart may take.
	beside = 2
)

// author is the sample add-on with a chart in the program of its author, on a hub of its own.
type author struct {
	*run

	program *sandbox.Process
}

// chart installs the sample add-on with a chart on a fleet of the size of o, and compares that with a template.
func chart(ctx context.Context, o Options, table *measure.Table, template cost) error {
	fmt.Fprintf(table.Log, "%s an add-on of a program\n", time.Now().UTC().Format(time.TimeOnly))
	o.Size.AddOns = 1
	patience := o.Size.patience()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	f, err := fleet.New(ctx, fleet.Options{
		Binaries: o.Binaries, Audit: true, AuditPolicy: auditPolicy(), Log: table.Log,
	})
	if err != nil {
		return err
	}
	o.Profiles = ""
	a := &author{run: &run{
		Options: o, Table: table, title: "a chart: ", fleet: f, audit: measure.NewAudit(f.Hub.AuditLog()),
	}}
	err = a.measure(ctx, template)
	if a.program != nil {
		a.program.Stop(stopGrace)
	}
	if a.spokes != nil {
		a.spokes.Stop()
	}
	if err != nil {
		err = fmt.Errorf("an add-on of a program: %w", err)
	}
	return errors.Join(err, f.Close())
}

func (a *author) measure(ctx context.Context, template cost) error {
	var err error
	if a.hub, err = client.NewWithWatch(a.fleet.Hub.Admin(), client.Options{Scheme: fleet.Scheme()}); err != nil {
		return fmt.Errorf("building the client of the hub: %w", err)
	}
	if err := a.join(ctx); err != nil {
		return err
	}
	if err := a.reportVersions(ctx); err != nil {
		return err
	}
	if err := a.start(ctx); err != nil {
		return err
	}
	if err := a.quiet(ctx); err != nil {
		return err
	}
	before, err := a.used()
	if err != nil {
		return err
	}
	c, err := a.cost(ctx, "chart", a.install)
	if err != nil {
		return err
	}
	after, err := a.used()
	if err != nil {
		return err
	}
	all := float64(a.Size.all())
	sent := after.requests.Since(before.requests)
	fmt.Fprintf(a.Log, "  the program sent: %s\n", sent)
	a.Time("a chart: install", c.took, beside*template.took)
	a.Note("a chart: install beside a template", fmt.Sprintf("%.2fx of %s",
		float64(c.took)/float64(template.took), template.took.Round(time.Millisecond)), "", true)
	a.Number("a chart: install, requests per add-on", float64(c.requests.Count)/all, 1, " of the hub manager", 0)
	a.Number("a chart: install, requests of the program per add-on", float64(sent.Count)/all, 1, "", 0)
	a.Number("a chart: install, lost races", float64(c.requests.Conflicts+sent.Conflicts), 0, "", 0)
	a.Time("a chart: install, processor of the hub manager", c.processor, 0)
	a.Time("a chart: install, processor of the program", after.processor-before.processor, 0)
	a.Number("a chart: install, memory of the program at most", after.memory/measure.Mebibyte, 0, " MiB", 0)
	return a.again(ctx)
}

// reportVersions has all clusters report a version of Kubernetes, which charts are rendered with.
func (a *author) reportVersions(ctx context.Context) error {
	return spread(ctx, a.Size.Clusters, func(ctx context.Context, n int) error {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(n)}}
		return a.hub.Status().Patch(ctx, cluster, client.RawPatch("application/merge-patch+json",
			[]byte(`{"status":{"version":{"kubernetes":"v1.35.4"}}}`)))
	})
}

// start builds the program, applies its files and the rights that it prints, and runs it with them.
func (a *author) start(ctx context.Context) error {
	root, err := sandbox.ModuleRoot()
	if err != nil {
		return fmt.Errorf("looking for the sample: %w", err)
	}
	folder, dir := filepath.Join(root, "test", "samples", chartAddOn), a.fleet.Hub.Dir
	path := filepath.Join(dir, chartAddOn)
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-X main.version=bench", "-o", path, ".")
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", chartAddOn, err, out)
	}
	for _, name := range []string{"10-namespace.yaml", "20-roles.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, "hub", name))
		if err != nil {
			return fmt.Errorf("reading the files of the sample: %w", err)
		}
		if err := a.fleet.Hub.Apply(ctx, text); err != nil {
			return err
		}
	}
	rights, err := exec.CommandContext(ctx, path, "rbac", "--namespace="+chartNamespace).Output()
	if err != nil {
		return fmt.Errorf("asking the program for its rights: %w", err)
	}
	if err := a.fleet.Hub.Apply(ctx, rights); err != nil {
		return err
	}
	identity, err := a.fleet.Hub.ServiceAccount(ctx, chartNamespace, chartAccount)
	if err != nil {
		return err
	}
	kubeconfig, err := a.fleet.Hub.Kubeconfig(identity)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, chartAccount+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	a.program = &sandbox.Process{
		Name: chartAccount, Path: path, LogPath: filepath.Join(dir, chartAccount+".log"),
		Args: []string{"--kubeconfig=" + file, "--namespace=" + chartNamespace, "--health-probe-bind-address=0"},
	}
	return a.program.Start()
}

// used returns what the program has used so far.
func (a *author) used() (cost, error) { return a.usedBy(a.program, authorUser()) }

// authorUser is the user of the program.
func authorUser() string { return "system:serviceaccount:" + chartNamespace + ":" + chartAccount }

// install has the placement install the add-on on all clusters.
func (a *author) install(ctx context.Context) (time.Duration, error) {
	values := &addonv1alpha1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: chartNamespace, Name: chartAddOn},
		Spec: addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: &addonv1alpha1.NodePlacement{
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		}},
	}
	cma := management(chartAddOn, 0)
	cma.Spec = addonv1alpha1.ClusterManagementAddOnSpec{InstallStrategy: cma.Spec.InstallStrategy}
	cma.Spec.InstallStrategy.Placements[0].Configs = []addonv1alpha1.AddOnConfig{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: apiGroup, Resource: "addondeploymentconfigs"},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: values.Namespace, Name: values.Name},
	}}
	began := time.Now()
	for _, object := range []client.Object{values, cma} {
		if err := a.hub.Create(ctx, object); err != nil {
			return 0, fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	err := fleet.Wait(ctx, "the add-on to be installed", nil, func(ctx context.Context) error {
		if err := a.program.Exited(); err != nil {
			return err
		}
		var found addonv1alpha1.ClusterManagementAddOn
		if err := a.hub.Get(ctx, client.ObjectKeyFromObject(cma), &found); err != nil {
			return err
		}
		if !installed(&found, 0) {
			return fleet.NotYet("%+v", found.Status.InstallProgressions)
		}
		return nil
	})
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	return took, a.allInstalled(ctx)
}

// allInstalled fails unless all clusters have the add-on: the ClusterManagementAddOn counts the clusters that it knows.
func (a *author) allInstalled(ctx context.Context) error {
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := a.hub.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the add-ons of the clusters: %w", err)
	}
	n := 0
	for i := range list.Items {
		if isCompleted(list.Items[i].Status.Conditions) {
			n++
		}
	}
	if n != a.Size.all() {
		return fmt.Errorf("%d of %d add-ons are installed although the ClusterManagementAddOn says all are", n, a.Size.all())
	}
	return nil
}

// again starts the program once more: what was rendered is remembered, so nothing is rendered and nothing is written.
func (a *author) again(ctx context.Context) error {
	a.program.Stop(stopGrace)
	before, err := a.audit.Of(authorUser())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := a.program.Start(); err != nil {
		return err
	}
	if err := begun(ctx, "the program to begin", a.used, before); err != nil {
		return err
	}
	since, err := restSince(ctx, "the program to be at rest", a.used)
	if err != nil {
		return err
	}
	after, err := a.used()
	if err != nil {
		return err
	}
	sent := after.requests.Since(before)
	fmt.Fprintf(a.Log, "  the program sent: %s\n", sent)
	a.Time("a chart: start of the program until it is quiet", since.Sub(began), 0)
	a.Number("a chart: start, requests per add-on", float64(sent.Count)/float64(a.Size.all()), 2, "", 0)
	a.Time("a chart: start, processor of the program", after.processor, 0)
	return nil
}
