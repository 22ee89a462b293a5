package klusterlet

import "slices"

// Settings are which settings a Klusterlet has.
type Settings int

const (
	// Some are a few of several releases. One replica gets no leader election, as in releases before 1.2.
	Some Settings = iota
	// None is a Klusterlet of OCM 1.2 or 1.3 in which nothing is set. Its API has the same fields in both.
	None
	// All is everything that a Klusterlet of OCM 1.2 or 1.3 sets for agents that use certificates, tokens and
	// ManifestWorks.
	All
	// Announced is what was merged or announced for OCM 1.4, beside All. That release was not seen: the names of flags are
	// those of proposals and pull requests, and what reports the hosting cluster has our names. A flag and a gate stand in
	// for what nobody knows yet: UnknownFlag and UnknownGate.
	Announced
)

const (
	// UnknownFlag is a flag that no release has.
	UnknownFlag = "--in-two-years"
	// UnknownGate is a feature gate that no release has.
	UnknownGate = "InTwoYears"
)

// Elects reports whether the pods of a Deployment elect a leader.
func (k Klusterlet) Elects() bool { return k.Settings != Some || k.Replicas > 1 }

// RegistrationSettings are the flags of the agent for registration that follow from the settings.
func (k Klusterlet) RegistrationSettings() []string {
	return slices.Concat(k.ofRegistration(), limits(k.Settings), later(k.Settings))
}

// WorkSettings are those of the agent for works.
func (k Klusterlet) WorkSettings() []string {
	return slices.Concat(k.ofWork(), limits(k.Settings), later(k.Settings))
}

// SingletonSettings are those of the agent of a singleton.
func (k Klusterlet) SingletonSettings() []string {
	return slices.Concat(k.ofWork(), k.ofRegistration(), limits(k.Settings), later(k.Settings))
}

func (k Klusterlet) ofRegistration() []string {
	var flags []string
	switch k.Settings {
	case None:
	case Some:
		flags = []string{
			"--feature-gates=AddonManagement=true", "--client-cert-expiration-seconds=3600",
			"--addon-kubeclient-registration-auth=csr", "--tls-min-version=VersionTLS12",
		}
	case All, Announced:
		flags = []string{
			"--feature-gates=AddonManagement=true", "--feature-gates=ClusterClaim=true", "--feature-gates=ClusterProperty=false",
			"--feature-gates=V1beta1CSRAPICompatibility=false", "--feature-gates=MultipleHubs=false",
			"--spoke-external-server-urls=https://api." + k.Cluster + ".example.com:6443",
			"--client-cert-expiration-seconds=86400",
			"--cluster-annotations=agent.open-cluster-management.io/site=north",
			"--max-custom-cluster-claims=30", "--reserved-cluster-claim-suffixes=reserved.example.com",
			"--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=86400",
		}
	}
	if k.Settings == Announced {
		flags = append(flags, "--cluster-name-provider=openshift")
	}
	if k.HostingCluster != "" {
		flags = append(flags, "--report-hosting-cluster", "--hosting-cluster-name="+k.HostingCluster)
	}
	return flags
}

func (k Klusterlet) ofWork() []string {
	var flags []string
	switch k.Settings {
	case None:
	case Some:
		flags = []string{
			"--feature-gates=ExecutorValidatingCaches=true", "--hub-kube-api-qps=50", "--hub-kube-api-burst=100",
			"--appliedmanifestwork-eviction-grace-period=60m0s", "--tls-min-version=VersionTLS12",
		}
	case All, Announced:
		flags = []string{
			"--feature-gates=ExecutorValidatingCaches=true", "--feature-gates=RawFeedbackJsonString=true",
			"--hub-kube-api-qps=50", "--hub-kube-api-burst=100", "--appliedmanifestwork-eviction-grace-period=60m0s",
		}
	}
	if k.Settings == Announced {
		flags = append(flags, "--feature-gates=ManifestWorkApplyLatency=true", "--workload-agent-workers=5")
	}
	return flags
}

// limits are the flags about requests, which both agents have.
func limits(settings Settings) []string {
	if settings == None {
		return nil
	}
	return []string{"--kube-api-qps=50", "--kube-api-burst=100"}
}

// later are the flags and gates of later releases that both agents have.
func later(settings Settings) []string {
	if settings != Announced {
		return nil
	}
	return []string{
		"--tls-min-version=VersionTLS12",
		"--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
		"--feature-gates=SIGPlacementDecision=true", "--feature-gates=" + UnknownGate + "=true", UnknownFlag + "=true",
	}
}
