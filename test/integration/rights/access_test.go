package rights_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// useTokens starts the agent with the driver token and then again without.
func (w *world) useTokens(ctx context.Context) error {
	certificates := w.cluster.Agent.Args
	w.cluster.Agent.Stop(10 * time.Second)
	w.cluster.Agent.Args = append(slices.Clone(certificates), "--addon-kubeclient-registration-auth=token")
	w.cluster.Agent.Env = []string{plainLists}
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, "a token for the add-on", nil, func(ctx context.Context) error {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: addOn + "-hub-kubeconfig"}
		if err := w.cluster.Client.Get(ctx, key, &secret); err != nil {
			return err
		}
		if len(secret.Data["token"]) == 0 {
			return fleet.NotYet("the credential of the add-on has no token")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := w.noteTokens(ctx); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: in(own, addOn+"-agent")},
		&rbacv1.Role{ObjectMeta: in(own, addOn+"-token-role")},
		&rbacv1.RoleBinding{ObjectMeta: in(own, addOn+"-token-role")},
	} {
		if err := w.strip(ctx, object, withoutLabels); err != nil {
			return err
		}
	}
	w.cluster.Agent.Stop(10 * time.Second)
	w.cluster.Agent.Args = certificates
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	return w.goes(ctx, &corev1.ServiceAccount{ObjectMeta: in(own, addOn+"-agent")})
}

// renew waits until the agent has another certificate than the first.
func (w *world) renew(ctx context.Context) error {
	var first *x509.Certificate
	return fleet.Wait(ctx, "the agent to renew its certificate", nil, func(ctx context.Context) error {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: names.NamespaceAgent, Name: "hub-kubeconfig-secret"}
		if err := w.cluster.Client.Get(ctx, key, &secret); err != nil {
			return err
		}
		block, _ := pem.Decode(secret.Data["tls.crt"])
		if block == nil {
			return fleet.NotYet("no certificate in %v", key)
		}
		now, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if first == nil {
			first = now
		}
		if first.Equal(now) {
			return fleet.NotYet("the certificate is still that of %s", first.NotBefore)
		}
		return nil
	})
}

// deny denies the cluster while its agent runs, starts the agent again, as a node that restarts would, and accepts the
// cluster again.
func (w *world) deny(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", own)}
	w.record.deniedFrom = time.Now()
	if err := w.patch(ctx, cluster, `{"spec":{"hubAcceptsClient":false}}`); err != nil {
		return err
	}
	if err := w.hasRules(ctx, func(n int) bool { return n == 1 }); err != nil {
		return err
	}
	from := time.Now()
	if err := w.breakWatches(ctx, from); err != nil {
		return err
	}
	w.cluster.Agent.Stop(10 * time.Second)
	started := len(w.cluster.Agent.Log())
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, "the agent to see that it is denied", nil, func(context.Context) error {
		if log := w.cluster.Agent.Log()[started:]; !strings.Contains(log, "is not accepted") {
			return fleet.NotYet("%s", log)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := w.noteDenied(ctx, from); err != nil {
		return err
	}
	if err := w.patch(ctx, cluster, `{"spec":{"hubAcceptsClient":true}}`); err != nil {
		return err
	}
	if err := w.hasRules(ctx, func(n int) bool { return n > 1 }); err != nil {
		return err
	}
	defer func() { w.record.deniedUntil = time.Now() }()
	return w.WaitAvailable(ctx, w.cluster, nil)
}

// hasRules waits until the number of the rules of the cluster's own role is right.
func (w *world) hasRules(ctx context.Context, right func(int) bool) error {
	return fleet.Wait(ctx, "the rights of the cluster", nil, func(ctx context.Context) error {
		role := &rbacv1.ClusterRole{}
		if err := w.HubClient.Get(ctx, client.ObjectKey{Name: names.RolePrefixCluster + own}, role); err != nil {
			return err
		}
		if !right(len(role.Rules)) {
			return fleet.NotYet("%d rules", len(role.Rules))
		}
		return nil
	})
}

// breakWatches breaks the connections of the agent until it has watched its ManagedCluster again. An audit log tells of
// a watch when it ends, so they break at least twice.
func (w *world) breakWatches(ctx context.Context, since time.Time) error {
	var last time.Time
	return fleet.Wait(ctx, "the agent to watch its ManagedCluster", nil, func(context.Context) error {
		if time.Since(last) > time.Second {
			w.Link.Cut()
			w.Link.Mend()
			last = time.Now()
		}
		requests, err := readAudit(w.Hub)
		if err != nil {
			return err
		}
		for _, r := range requests {
			if r.verb == "watch" && r.resource == "managedclusters" && r.name == own && r.at.After(since) && !r.denied {
				return nil
			}
		}
		return fleet.NotYet("no watch of it has ended")
	})
}
