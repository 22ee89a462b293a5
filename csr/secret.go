package csr

// Keys of the Secret of a credential.
const (
	// KeyCertificate is where a credential Secret holds its certificate chain, PEM.
	KeyCertificate = "tls.crt"
	// KeyPrivateKey is where a credential Secret holds its private key, PEM.
	KeyPrivateKey = "tls.key"
	// KeyKubeconfig is where a credential Secret holds its kubeconfig.
	KeyKubeconfig = "kubeconfig"
	// KeyClusterName is the key of a credential Secret with the name of its cluster.
	KeyClusterName = "cluster-name"
	// KeyAgentName is the key of the cluster's own credential Secret with the name of its agent.
	KeyAgentName = "agent-name"
)
