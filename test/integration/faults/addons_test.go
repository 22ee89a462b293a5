package faults_test

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// ofAddOn asks for an add-on on the cluster with an agent, and intoAddOn looks into the cluster, too.
func ofAddOn(name string) string   { return "addon " + name + " -n " + near }
func intoAddOn(name string) string { return ofAddOn(name) + " --spoke-kubeconfig " + world.looker }

// addOnFaults are the faults of add-ons before their works are applied.
func addOnFaults() map[string]fault {
	all := map[string]fault{
		"nobody defines the add-on": {
			code: causes.AddOnMissing, ask: ofAddOn, inject: func(*testing.T, string) {},
		},
		"the template does not exist": {
			code: causes.ConfigurationKept, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, nil)
			},
			repair: func(t *testing.T, name string) { t.Helper(); apply(t, world.hub, template(name, settings(name), "")) },
		},
		"a variable of the template has no value": {
			code: causes.NotRendered, ask: ofAddOn, well: true,
			prepare: func(t *testing.T, name string) { t.Helper(); simple(t, name, settings(name)) },
			inject: func(t *testing.T, name string) {
				t.Helper()
				broken := `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: default}, data: {a: "{{NOBODY}}"}}`
				apply(t, world.hub, template(name, broken, ""))
			},
			repair: func(t *testing.T, name string) { t.Helper(); apply(t, world.hub, template(name, settings(name), "")) },
		},
		"the template is of another add-on": {
			code: causes.RegistrationFailed, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				role := `{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster, currentCluster: {clusterRoleName: view}}]}}`
				apply(t, world.hub, template(name, settings(name), role))
				patch(t, world.hub, unstructuredTemplate(name), `{"spec":{"addonName":"another"}}`)
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, nil)
			},
		},
		"the configuration does not exist": {
			code: causes.ConfigurationKept, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, template(name, settings(name), ""))
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, nil, config(name))
			},
			repair: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, format(`{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: AddOnDeploymentConfig, metadata: {name: %[1]s, namespace: default}, spec: {}}`, name))
			},
		},
		"the role on the hub does not exist": {
			code: causes.RegistrationFailed, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, template(name, settings(name), `{type: KubeClient, kubeClient: {hubPermissions: [
				  {type: CurrentCluster, currentCluster: {clusterRoleName: `+name+`}}]}}`))
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, nil)
			},
			repair: func(t *testing.T, name string) { t.Helper(); apply(t, world.hub, format(grant, name)) },
		},
		"the CA of the signer does not exist": {
			code: causes.RequestRefused, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, template(name, settings(name), `{type: CustomSigner, customSigner: {
				  signerName: example.com/`+name+`, subject: {user: `+name+`}, signingCA: {name: `+name+`}}}`))
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, nil)
			},
		},
		"the hosting cluster does not exist": {
			code: causes.HostingInvalid, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, template(name, settings(name), ""))
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, map[string]string{names.AnnotationHostingCluster: "nobody"})
			},
		},
		"the hosting cluster does not consent": {
			code: causes.HostingInvalid, ask: ofAddOn,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				joined(t, name+"-host")
				patch(t, world.hub, member(name+"-host"), `{"metadata":{"annotations":{"`+names.AnnotationHosts+`":"another"}}}`)
			},
			inject: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.hub, template(name, settings(name), ""))
				apply(t, world.hub, definition(name, ""))
				installOn(t, near, name, map[string]string{names.AnnotationHostingCluster: name + "-host"})
			},
		},
		"a finalizer of another program keeps the add-on": {
			code: causes.DeletionWaits, ask: ofAddOn, well: true,
			prepare: func(t *testing.T, name string) { t.Helper(); simple(t, name, settings(name)) },
			inject: func(t *testing.T, name string) {
				t.Helper()
				patch(t, world.hub, addOn(name), `{"metadata":{"finalizers":["example.com/backup"]}}`)
				remove(t, world.hub, addOn(name))
			},
		},
		"the cluster of the add-on is denied": {
			code: causes.ClusterDenied, ask: func(name string) string { return "addon " + name + " -n " + name },
			prepare: func(t *testing.T, name string) {
				t.Helper()
				joined(t, name)
				apply(t, world.hub, template(name, settings(name), ""))
				apply(t, world.hub, definition(name, ""))
				installOn(t, name, name, nil)
			},
			inject: func(t *testing.T, name string) { t.Helper(); accepts(t, name, false) },
		},
	}
	addPlacements(all)
	addHooks(all)
	addCredentials(all)
	return all
}

// config names a configuration of a name.
func config(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "default", Name: name},
	}
}

// grant makes the role of an add-on, and lets the hub manager hand it out.
const grant = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects:
- {kind: ServiceAccount, name: addon-manager-controller-sa, namespace: open-cluster-management-hub}
`

// addPlacements adds the faults of placements and rollouts.
func addPlacements(all map[string]fault) {
	const places = `  installStrategy: {type: Placements, placements: [{name: %[1]s, namespace: default}]}`
	const placement = `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: %[1]s, namespace: default}
spec:
  tolerations: [{operator: Exists}]
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {%[1]s: "yes"}}}}]
`
	defined := func(t *testing.T, name string) {
		t.Helper()
		apply(t, world.hub, template(name, settings(name), ""))
		apply(t, world.hub, definition(name, format(places, name)))
	}
	selected := func(t *testing.T, name string) {
		t.Helper()
		apply(t, world.hub, format(placement, name))
		patch(t, world.hub, member(near), `{"metadata":{"labels":{"`+name+`":"yes"}}}`)
	}
	all["the placement does not exist"] = fault{code: causes.PlacementMissing, ask: ofAddOn, inject: defined, repair: selected}
	all["the placement selects no cluster"] = fault{
		code: causes.PlacementEmpty, ask: ofAddOn,
		inject: func(t *testing.T, name string) {
			t.Helper()
			apply(t, world.hub, format(placement, name))
			defined(t, name)
		},
		repair: selected,
	}
	all["the placement selects other clusters"] = fault{
		code: causes.AddOnMissing, ask: ofAddOn,
		inject: func(t *testing.T, name string) {
			t.Helper()
			joined(t, name)
			patch(t, world.hub, member(name), `{"metadata":{"labels":{"`+name+`":"yes"}}}`)
			apply(t, world.hub, format(placement, name))
			defined(t, name)
			installed(t, name, name)
		},
		repair: selected,
	}
	rolls := func(t *testing.T, name string) {
		t.Helper()
		for _, cluster := range []string{name + "-a", name + "-b"} {
			joined(t, cluster)
			patch(t, world.hub, member(cluster), `{"metadata":{"labels":{"`+name+`":"yes"}}}`)
		}
		apply(t, world.hub, format(placement, name))
		apply(t, world.hub, template(name, settings(name), ""))
		apply(t, world.hub, definition(name, format(`  installStrategy:
    type: Placements
    placements:
    - name: %[1]s
      namespace: default
      rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 0, progressDeadline: 1s}}`, name)))
	}
	all["a cluster of the rollout ran out of time"] = fault{
		code: causes.RolloutFailed, inject: rolls,
		ask: func(name string) string { return "addon " + name + " -n " + name + "-a" },
	}
	all["the rollout stopped before the cluster had its turn"] = fault{
		code: causes.RolloutStopped, inject: rolls,
		ask: func(name string) string { return "addon " + name + " -n " + name + "-b" },
	}
}

// addHooks adds the faults of pre-delete hooks.
func addHooks(all map[string]fault) {
	hooked := func(t *testing.T, name string) {
		t.Helper()
		simple(t, name, settings(name), `{apiVersion: batch/v1, kind: Job, metadata: {name: `+name+`-played, namespace: default,
		  annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}, spec: {backoffLimit: 0, template: {spec: {
		  restartPolicy: Never, containers: [{name: main, image: "registry.example.com/main:v1"}]}}}}`)
	}
	leaves := func(t *testing.T, name string) { t.Helper(); remove(t, world.hub, addOn(name)) }
	all["the pre-delete hook does not end"] = fault{code: causes.DeletionWaits, ask: ofAddOn, well: true, prepare: hooked, inject: leaves}
	all["the pre-delete hook fails"] = fault{
		code: causes.HookFailed, ask: ofAddOn, well: true, prepare: hooked, later: "the Job has to fail, and the agent to see it",
		inject: func(t *testing.T, name string) {
			t.Helper()
			leaves(t, name)
			pod(t, "default", name, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
		},
	}
}

// addCredentials adds the faults of credentials of add-ons that this hub does not approve.
func addCredentials(all map[string]fault) {
	const pending = "an agent waits ten seconds before it says so"
	all["the request of the add-on waits for a person"] = fault{
		code: causes.RequestWaits, ask: ofAddOn, inject: registers, later: pending,
	}
	all["a person denies the request of the add-on"] = fault{
		code: causes.RequestRefused, ask: ofAddOn,
		inject: func(t *testing.T, name string) {
			t.Helper()
			registers(t, name)
			decides(t, requestOf(t, name), certificatesv1.CertificateDenied)
		},
	}
	all["nobody signs for the signer of the add-on"] = fault{
		code: causes.RequestNotSigned, ask: ofAddOn, later: pending,
		inject: func(t *testing.T, name string) {
			t.Helper()
			registersOn(t, near, name, addonv1beta1.RegistrationConfig{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "example.com/" + name},
			})
			decides(t, requestOf(t, name), certificatesv1.CertificateApproved)
		},
	}
	all["the ServiceAccount of the token belongs to another program"] = fault{
		code: causes.TokenFailed, ask: func(name string) string { return "addon " + name + " -n " + name },
		prepare: joined,
		inject: func(t *testing.T, name string) {
			t.Helper()
			create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-agent"}})
			registersOn(t, name, name, addonv1beta1.RegistrationConfig{
				Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: "token"},
			})
		},
	}
}

// workloadFaults are the faults of add-ons whose works are applied.
func workloadFaults() map[string]fault {
	const namespace = "default"
	deployed := func(t *testing.T, name string) {
		t.Helper()
		simple(t, name, deployment(name+"-"+played, namespace))
		pod(t, namespace, name, runs(true))
	}
	podIs := func(change func(*corev1.PodStatus)) fault {
		return fault{
			code: causes.WorkloadNotReady, ask: ofAddOn, well: true, prepare: deployed,
			inject: func(t *testing.T, name string) { t.Helper(); pod(t, namespace, name, change) },
			repair: func(t *testing.T, name string) { t.Helper(); pod(t, namespace, name, runs(true)) },
		}
	}
	lease := podIs(waits("ImagePullBackOff", "manifest unknown"))
	lease.ask, lease.prepare = intoAddOn, func(t *testing.T, name string) {
		t.Helper()
		renews(t, namespace, name, 0)
		leased(t, name, deployment(name+"-"+played, namespace))
		pod(t, namespace, name, runs(true))
	}
	all := map[string]fault{
		"only the cluster shows that the image cannot be pulled": lease,
		"the image cannot be pulled":                             podIs(waits("ImagePullBackOff", "manifest unknown")),
		"the container crashes again and again":                  podIs(waits("CrashLoopBackOff", "back-off")),
		"a Secret of the pod does not exist":                     podIs(waits("CreateContainerConfigError", `secret "password" not found`)),
		"no node takes the pod": podIs(func(s *corev1.PodStatus) {
			s.Phase, s.ContainerStatuses = corev1.PodPending, nil
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: "Unschedulable", Message: "0/3 nodes are available"}}
		}),
		"a quota refuses the pods": {
			code: causes.WorkloadNotReady, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				namespaceOn(t, world.cluster, name)
				apply(t, world.cluster, format(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: %[1]s}, spec: {hard: {pods: "0"}}}`, name))
				simple(t, name, deployment(name, name))
			},
		},
		"the readiness probe fails": {
			code: causes.ProbeFailed, ask: ofAddOn, well: true, prepare: deployed,
			inject: func(t *testing.T, name string) { t.Helper(); pod(t, namespace, name, runs(false)) },
			repair: func(t *testing.T, name string) { t.Helper(); pod(t, namespace, name, runs(true)) },
		},
		"the namespace of the add-on does not exist": {
			code: causes.NotApplied, ask: ofAddOn,
			inject: func(t *testing.T, name string) { t.Helper(); simple(t, name, deployment(name, name)) },
			repair: func(t *testing.T, name string) { t.Helper(); namespaceOn(t, world.cluster, name) },
		},
		"the cluster does not serve a kind of the add-on": {
			code: causes.NotApplied, ask: ofAddOn,
			inject: func(t *testing.T, name string) {
				t.Helper()
				simple(t, name, `{apiVersion: nowhere.example/v1, kind: Missing, metadata: {name: x, namespace: default}}`)
			},
			repair: func(t *testing.T, name string) { t.Helper(); apply(t, world.hub, template(name, settings(name), "")) },
		},
		"the agent of the add-on never renews its lease": {
			code: causes.LeaseMissing, ask: ofAddOn,
			inject: func(t *testing.T, name string) { t.Helper(); leased(t, name, settings(name)) },
			repair: func(t *testing.T, name string) { t.Helper(); renews(t, names.NamespaceAgentAddon, name, 0) },
		},
		"the agent of the add-on stops renewing its lease": {
			code: causes.LeaseStopped, ask: ofAddOn, well: true,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				renews(t, names.NamespaceAgentAddon, name, 0)
				leased(t, name, settings(name))
			},
			inject: func(t *testing.T, name string) { t.Helper(); renews(t, names.NamespaceAgentAddon, name, time.Hour) },
			repair: func(t *testing.T, name string) { t.Helper(); renews(t, names.NamespaceAgentAddon, name, 0) },
		},
	}
	return all
}

// leased installs an add-on whose health is its lease.
func leased(t *testing.T, name, manifest string) {
	t.Helper()
	apply(t, world.hub, template(name, manifest, ""))
	patch(t, world.hub, unstructuredTemplate(name),
		`{"metadata":{"annotations":{"addon.spokelet.io/health-probe":"Lease"}}}`)
	apply(t, world.hub, definition(name, ""))
	installOn(t, near, name, nil)
}

// registers installs an add-on that this hub does not define, as the program of its author does.
func registers(t *testing.T, name string) {
	t.Helper()
	registersOn(t, near, name, asAgent(near, name))
}

// installed waits until an add-on is on a cluster.
func installed(t *testing.T, cluster, name string) {
	t.Helper()
	suite.Eventually(t, func() error {
		a := addOn(name)
		a.Namespace = cluster
		return world.hub.Client.Get(t.Context(), keyOf(a), a)
	})
}
