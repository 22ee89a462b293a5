package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// record holds what the ConfigMap has.
type record struct {
	// since is when the API server answered first after it did not.
	since time.Time
	// outages is how often it did not answer.
	outages int
}

// read returns the record in the data of a ConfigMap; zero for data that nobody recorded.
func read(data map[string]string) record {
	since, err := time.Parse(time.RFC3339, data["since"])
	if err != nil {
		return record{}
	}
	outages, err := strconv.Atoi(data["outages"])
	if err != nil {
		return record{}
	}
	return record{since: since, outages: outages}
}

// data returns the data of the ConfigMap.
func (r record) data() map[string]string {
	return map[string]string{"since": r.since.UTC().Format(time.RFC3339), "outages": strconv.Itoa(r.outages)}
}

// next returns the record after an answer at an instant; silent reports that the API server did not answer before.
func (r record) next(now time.Time, silent bool) record {
	switch {
	case r.since.IsZero():
		return record{since: now}
	case silent:
		return record{since: now, outages: r.outages + 1}
	}
	return r
}

// monitor checks the API server.
type monitor struct {
	client    kubernetes.Interface
	namespace string
	// owners is the ServiceAccount of the agent: what the agent makes goes with it.
	owners []metav1.OwnerReference

	// silent reports that the API server did not answer since the last record.
	silent bool

	mu sync.Mutex
	// err is the result of the last check.
	err error
}

// start reads the ServiceAccount and checks for the first time.
func (m *monitor) start(ctx context.Context, now time.Time) error {
	found, err := m.client.CoreV1().ServiceAccounts(m.namespace).Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading ServiceAccount %s/%s: %w", m.namespace, account, err)
	}
	m.owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account, UID: found.UID}}
	return m.check(ctx, now)
}

// check asks the API server for its version, and records that it answered.
func (m *monitor) check(ctx context.Context, now time.Time) error {
	_, err := m.client.Discovery().ServerVersion()
	if err != nil {
		m.silent = true
	} else if err = m.save(ctx, now); err == nil {
		m.silent = false // An outage is one until it was recorded.
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	return err
}

// save writes the record when it differs.
func (m *monitor) save(ctx context.Context, now time.Time) error {
	maps := m.client.CoreV1().ConfigMaps(m.namespace)
	existing, err := maps.Get(ctx, addOn, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: addOn, OwnerReferences: m.owners},
			Data:       record{}.next(now, m.silent).data(),
		}, metav1.CreateOptions{})
	case err == nil:
		before := read(existing.Data)
		if after := before.next(now, m.silent); after != before {
			existing.Data = after.data()
			_, err = maps.Update(ctx, existing, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("recording the answer of the API server: %w", err)
	}
	return nil
}

// healthy returns why the last check failed.
func (m *monitor) healthy(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return errors.New("the last check failed: " + m.err.Error())
	}
	return nil
}
