package hub

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/message"
)

// foreignFlags are the flags of OCM's hub programs that differ from ours.
type foreignFlags struct {
	// approvalUsers is the former name of --auto-approved-csr-users.
	approvalUsers []string
	// drivers are the registration drivers; workDriver is the driver of ManifestWorks.
	drivers    []string
	workDriver string
	// labels are labels as key=value, separated by commas.
	labels string
	// resources are the resources that are deleted with a cluster, each as group/version/resource.
	resources []string
	// autoApproval and workTTL are feature gates.
	autoApproval bool
	workTTL      bool
	// notes are messages about flags without effect.
	notes command.Foreign
}

// drivers returns the registration drivers of OCM, and whether we support them.
func drivers() map[string]bool {
	return map[string]bool{"csr": true, "token": true, "awsirsa": false, "grpc": false}
}

// addForeignFlags binds the flags of OCM's hub, so that its command lines work.
func (c *Config) addForeignFlags(f *pflag.FlagSet) {
	o := &c.foreign
	o.autoApproval, o.workTTL = true, c.WorkTTL
	f.StringSliceVar(&o.approvalUsers, "cluster-auto-approval-users", nil,
		"former name of --auto-approved-csr-users, for where that names nobody")
	f.StringSliceVar(&o.drivers, "enabled-registration-drivers", nil,
		"how clusters and add-ons may get credentials: csr, token; both are always there")
	f.StringSliceVar(&o.resources, "gc-resource-list", nil,
		"what is removed with a cluster, as group/version/resource; always managedclusteraddons, then manifestworks")
	f.StringVar(&o.labels, "labels", "",
		"labels of the namespace, roles and bindings that the hub manager makes for a cluster, as key=value, "+
			"separated by commas; none of Kubernetes (but app.kubernetes.io), OCM and Spokelet")
	f.StringVar(&o.workDriver, "work-driver", "kube", "how ManifestWorks travel; only kube is there")
	f.Var(&command.Gates{Notes: &o.notes, Known: map[string]command.Gate{
		"ManagedClusterAutoApproval":   {Value: &o.autoApproval},
		"CleanUpCompletedManifestWork": {Value: &o.workTTL},
		"AddonManagement":              {On: true},
		"DefaultClusterSet":            {On: true},
		"ResourceCleanup":              {On: true},
		"NilExecutorValidating":        {On: true},
		"CloudEventsDrivers":           {},
		"ClusterImporter":              {},
		"ClusterProfile":               {},
		"ManifestWorkReplicaSet":       {},
		"PlacementDebugServer":         {Reason: "conditions of a Placement say what it selects, and why"},
		"SIGPlacementDecision":         {},
		"V1beta1CSRAPICompatibility":   {},
	}}, "feature-gates", "feature gates of OCM as name=true or name=false, separated by commas; "+
		"ManagedClusterAutoApproval=false switches off --auto-approved-csr-users, "+
		"CleanUpCompletedManifestWork=false is --work-ttl=false; the log says which of the others have an effect")
	n := &o.notes
	n.Accept(f, "flags say it all, no file is read", "config")
	n.Accept(f, "see --health-probe-bind-address and --metrics-bind-address", "listen")
	n.Accept(f, "the log has one verbosity, see -v", "vmodule")
	n.Accept(f, "every line of the log is written at once", "log-flush-frequency")
	n.AcceptBool(f, "the log goes to standard error", "logtostderr", "alsologtostderr")
	n.Accept(f, "the lease is in --namespace", "leader-election-namespace")
	n.Accept(f, "a file that changes is read again, the process goes on", "terminate-on-files")
	n.Accept(f, "it is for other drivers than csr and token", "auto-approved-arn-patterns", "auto-approved-grpc-users",
		"hub-cluster-arn", "aws-resource-tags", "grpc-ca-file", "grpc-key-file", "grpc-signing-duration")
	n.Accept(f, "it is for another driver than kube", "work-driver-config", "cloudevents-client-id", "source-id")
}

// adopt copies the values of foreign flags to the fields with the same meaning, and takes the default where a driver is
// not known.
func (c *Config) adopt() {
	o := &c.foreign
	o.drivers = slices.DeleteFunc(o.drivers, func(driver string) bool {
		_, known := drivers()[driver]
		if !known {
			o.notes.Unknown("--enabled-registration-drivers="+driver, "unknown driver; csr and token are there")
		}
		return !known
	})
	o.notes.Driver("--work-driver", &o.workDriver, "kube", "mqtt", "grpc", "")
	if len(c.AutoApprovedCSRUsers) == 0 {
		c.AutoApprovedCSRUsers = o.approvalUsers
	}
	if !o.autoApproval && len(c.AutoApprovedCSRUsers) > 0 {
		c.AutoApprovedCSRUsers = nil
		o.notes.Note("--auto-approved-csr-users", "feature gate ManagedClusterAutoApproval is off")
	}
	c.WorkTTL = c.WorkTTL && o.workTTL
	c.ClusterLabels = o.clusterLabels()
	for _, resource := range o.resources {
		if !removed(resource) {
			o.notes.Note("--gc-resource-list="+resource, "they are not removed with a cluster; only managedclusteraddons and "+
				"manifestworks are: delete them yourself, or give them an owner that goes")
		}
	}
}

// clusterLabels returns the labels of what belongs to a cluster. A wrong one is told, because OCM's hub starts with it.
// One that means something to Kubernetes or to us is as well: roles could be aggregated, or count as consented.
func (o *foreignFlags) clusterLabels() map[string]string {
	all := map[string]string{}
	for _, pair := range strings.FieldsFunc(o.labels, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		wrong := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
		switch {
		case len(wrong) > 0:
			o.notes.Note("--labels="+message.Cut(pair, maxLabel), wrong[0])
		case isReserved(key):
			o.notes.Note("--labels="+key, "labels of this domain have a meaning of their own on what belongs to a cluster")
		default:
			all[key] = value
		}
	}
	return all
}

// maxLabel is how much of a wrong label is quoted.
const maxLabel = 100

// isReserved reports whether the domain of a label is one of Kubernetes, OCM or Spokelet.
func isReserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && domain != "app.kubernetes.io" && slices.ContainsFunc(
		[]string{"kubernetes.io", "k8s.io", "open-cluster-management.io", "spokelet.io"},
		func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) })
}

// removed reports whether a resource, as group/version/resource, is one that we delete with its cluster.
func removed(resource string) bool {
	parts := strings.Split(resource, "/")
	return slices.Contains([]string{
		"addon.open-cluster-management.io/managedclusteraddons", "work.open-cluster-management.io/manifestworks",
	}, parts[0]+"/"+parts[len(parts)-1])
}

// validateForeign reports values of foreign flags that are not supported.
func (c *Config) validateForeign(complain func(flag, format string, args ...any)) {
	for _, driver := range c.foreign.drivers {
		if !drivers()[driver] {
			complain("enabled-registration-drivers", "%q is not supported; csr and token are there", driver)
		}
	}
	if driver := c.foreign.workDriver; driver != "" && driver != "kube" {
		complain("work-driver", "%q is not supported: works travel through the API server, which is kube", driver)
	}
	for _, resource := range c.foreign.resources {
		if parts := strings.Split(resource, "/"); len(parts) != 3 || slices.Contains(parts, "") {
			complain("gc-resource-list", "%q is not of the form group/version/resource", resource)
		}
	}
}
