package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// courierAgent is the agent of add-on courier. Each second it creates an object on the hub and deletes it. Its record
// has how often that was done, how often it failed, and which tokens the API server saw.
func courierAgent(ctx context.Context, o options) error {
	hub, err := o.client()
	if err != nil {
		return err
	}
	c := courier{hub: hub, cluster: o.cluster}
	return forever(ctx, c.round)
}

type courier struct {
	hub              kubernetes.Interface
	cluster          string
	rounds, failures int
	// lastFailure says why a round failed.
	lastFailure string
	// tokens are the identifiers of the tokens, in the order in which they were used.
	tokens []string
}

// round delivers one object, and writes the record. A record that cannot be written is a failure, too.
func (c *courier) round(ctx context.Context) error {
	c.rounds++
	c.fail(ctx, errors.Join(c.deliver(ctx), c.identify(ctx)))
	err := record{namespace: c.cluster, name: "courier"}.write(ctx, c.hub, map[string]string{
		"rounds": strconv.Itoa(c.rounds), "failures": strconv.Itoa(c.failures), "failure": c.lastFailure,
		"tokens": strings.Join(c.tokens, ","),
	})
	c.fail(ctx, err)
	return nil
}

// fail notes an error. What failed because the agent was told to end did not fail.
func (c *courier) fail(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	c.failures++
	c.lastFailure = err.Error()
	slog.Warn("a round failed", "error", err)
}

// deliver creates an object and deletes it.
func (c *courier) deliver(ctx context.Context) error {
	name := fmt.Sprintf("parcel-%d", c.rounds)
	parcels := c.hub.CoreV1().ConfigMaps(c.cluster)
	_, err := parcels.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a parcel: %w", err)
	}
	if err := parcels.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting a parcel: %w", err)
	}
	return nil
}

// identify notes the token that the API server saw.
func (c *courier) identify(ctx context.Context) error {
	who, err := whoAmI(ctx, c.hub)
	if err != nil {
		return err
	}
	for _, id := range who.Extra["authentication.kubernetes.io/credential-id"] {
		if !slices.Contains(c.tokens, id) {
			c.tokens = append(c.tokens, id)
		}
	}
	return nil
}
