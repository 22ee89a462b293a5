package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// node is one line of the tree and what hangs below it.
type node struct {
	text     string
	children []node
}

// leaf adds a child without children.
func (n *node) leaf(format string, args ...any) {
	n.children = append(n.children, node{text: fmt.Sprintf(format, args...)})
}

// print writes the tree, each line behind prefix. Text that is wider than the width goes on in further lines, which
// keep the branches of the tree and stand two columns to the right of the first.
func (n *node) print(out io.Writer, prefix string, width int) {
	for i := range n.children {
		child := &n.children[i]
		branch, below := "├─ ", "│  "
		if i == len(n.children)-1 {
			branch, below = "└─ ", "   "
		}
		rest := prefix + below
		if len(child.children) > 0 {
			rest += "│ "
		} else {
			rest += "  "
		}
		room := max(width-ansi.StringWidth(rest), minWidth)
		for j, line := range wrap(oneLine(child.text), room) {
			lead := rest
			if j == 0 {
				lead = prefix + branch
			}
			fmt.Fprintln(out, strings.TrimRight(lead+line, " "))
		}
		child.print(out, prefix+below, width)
	}
}

// oneLine returns text without line breaks and other characters that move the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, ansi.Strip(strings.TrimSpace(text)))
}

// view reads what the tree shows: the hub as an administrator, and the credentials on each spoke.
type view struct {
	hub    client.Client
	spokes map[string]client.Client
	now    time.Time
}

// tree reads the hub and one cluster, with its add-ons, conditions, works and credentials, into a tree. Add-ons are
// read as v1beta1, so through the conversion webhook, as any other client would.
func (v view) tree(ctx context.Context, title, name string) (*node, error) {
	root := &node{text: title}
	var cluster clusterv1.ManagedCluster
	if err := v.hub.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	child, err := v.cluster(ctx, &cluster)
	if err != nil {
		return nil, err
	}
	root.children = append(root.children, *child)
	return root, nil
}

func (v view) cluster(ctx context.Context, cluster *clusterv1.ManagedCluster) (*node, error) {
	child := &node{text: fmt.Sprintf("cluster %s  Kubernetes %s", cluster.Name, cluster.Status.Version.Kubernetes)}
	addConditions(child, cluster.Status.Conditions)
	own := types.NamespacedName{Namespace: names.NamespaceAgent, Name: names.SecretHub}
	v.credential(ctx, child, cluster.Name, own)
	var addons addonv1beta1.ManagedClusterAddOnList
	if err := v.hub.List(ctx, &addons, client.InNamespace(cluster.Name)); err != nil {
		return nil, fmt.Errorf("listing the add-ons of cluster %s: %w", cluster.Name, err)
	}
	for i := range addons.Items {
		addon, err := v.addon(ctx, &addons.Items[i])
		if err != nil {
			return nil, err
		}
		child.children = append(child.children, *addon)
	}
	return child, nil
}

func (v view) addon(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) (*node, error) {
	child := &node{text: fmt.Sprintf("add-on %s  %s", addon.Name, summary(addon))}
	addConditions(child, addon.Status.Conditions)
	var works workv1.ManifestWorkList
	err := v.hub.List(ctx, &works, client.InNamespace(addon.Namespace),
		client.MatchingLabels{names.LabelAddonName: addon.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the works of add-on %s/%s: %w", addon.Namespace, addon.Name, err)
	}
	for i := range works.Items {
		child.children = append(child.children, workNode(&works.Items[i]))
	}
	for _, registration := range addon.Status.Registrations {
		name := addon.Name + "-hub-kubeconfig"
		if signer := registration.CustomSigner; signer != nil {
			name = addon.Name + "-" + strings.ReplaceAll(signer.SignerName, "/", "-") + "-client-cert"
		}
		v.credential(ctx, child, addon.Namespace, types.NamespacedName{Namespace: addon.Status.Namespace, Name: name})
	}
	return child, nil
}

// summary says in two words what most people ask first: is it available, and is it rolled out.
func summary(addon *addonv1beta1.ManagedClusterAddOn) string {
	available, progressing := "Unknown", "Unknown"
	if c := meta.FindStatusCondition(addon.Status.Conditions, "Available"); c != nil {
		available = string(c.Status)
	}
	if c := meta.FindStatusCondition(addon.Status.Conditions, "Progressing"); c != nil {
		progressing = c.Reason
	}
	return fmt.Sprintf("Available=%s Progressing=%s", available, progressing)
}

func workNode(work *workv1.ManifestWork) node {
	n := node{text: fmt.Sprintf("work %s  %d manifests", work.Name, len(work.Spec.Workload.Manifests))}
	addConditions(&n, work.Status.Conditions)
	for _, m := range work.Status.ResourceStatus.Manifests {
		r := m.ResourceMeta
		name := r.Name
		if r.Namespace != "" {
			name = r.Namespace + "/" + r.Name
		}
		state := "applied"
		if c := meta.FindStatusCondition(m.Conditions, "Applied"); c == nil || c.Status != metav1.ConditionTrue {
			state = "NOT applied"
			if c != nil {
				state += ": " + c.Message
			}
		}
		n.leaf("%s %s  %s", r.Kind, name, state)
	}
	return n
}

// addConditions adds one line per condition, ordered by type.
func addConditions(n *node, conditions []metav1.Condition) {
	sorted := append([]metav1.Condition(nil), conditions...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Type < sorted[j].Type })
	for _, c := range sorted {
		n.leaf("%s=%s  %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
}

// credential adds a line about the certificate in a Secret of a spoke; what cannot be read is said there.
func (v view) credential(ctx context.Context, n *node, cluster string, key types.NamespacedName) {
	spoke, ok := v.spokes[cluster]
	if !ok {
		n.leaf("credential %s  on a cluster that this demo did not start", key)
		return
	}
	var secret corev1.Secret
	if err := spoke.Get(ctx, key, &secret); err != nil {
		n.leaf("credential %s  %v", key, err)
		return
	}
	cert, err := firstCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		n.leaf("credential %s  %v", key, err)
		return
	}
	left := cert.NotAfter.Sub(v.now).Round(time.Minute)
	n.leaf("credential %s  for %s, expires %s (in %s)",
		key, cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339), days(left))
}

func firstCertificate(pemBytes []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(pemBytes)
	if block == nil {
		return nil, errors.New("holds no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// days prints a duration in days and hours once it is longer than two days.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.String()
	}
	return fmt.Sprintf("%dd%dh", d/day, (d%day)/time.Hour)
}
