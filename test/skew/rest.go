package skew

import (
	"context"
	"fmt"
	"time"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// quiet is how long nothing may be written, and settling how long it may take until that begins.
	quiet, settling = 20 * time.Second, 90 * time.Second
)

// rest waits for a span in which no program writes anything, but heartbeats and what belongs to certificates.
func (w *world) rest(ctx context.Context) error {
	seen, err := w.look(ctx)
	if err != nil {
		return err
	}
	before, err := w.written(seen)
	if err != nil {
		return err
	}
	last, since, began := before, time.Now(), time.Now()
	for time.Since(since) < quiet {
		if !fleet.Pause(ctx, every) {
			return context.Cause(ctx)
		}
		now, err := w.written(seen)
		if err != nil {
			return err
		}
		if more := grown(now, last); len(more) > 0 {
			w.say("written: %v", more)
			last, since = now, time.Now()
		}
		if time.Since(began) > settling {
			return fmt.Errorf("somebody writes all the time: %v", grown(now, before))
		}
	}
	return nil
}

// written counts what the programs have written so far: by control plane, user, verb and resource.
func (w *world) written(seen map[string]Cluster) (map[string]int, error) {
	account := func(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
	users := map[string][]string{fleet.HubName: {
		account(names.NamespaceHub, names.ServiceAccountManager), account(names.NamespaceHub, names.ServiceAccountAddons),
	}}
	for name, c := range seen {
		users[fleet.HubName] = append(users[fleet.HubName], "system:open-cluster-management:"+name+":"+c.Agent)
		users[name] = []string{account(names.NamespaceAgent, names.ServiceAccountAgent)}
	}
	all := map[string]int{}
	for plane, of := range users {
		for _, user := range of {
			requests, err := w.audits[plane].Of(user)
			if err != nil {
				return nil, fmt.Errorf("counting what %s wrote on %s: %w", user, plane, err)
			}
			for kind, n := range writes(requests) {
				all[plane+": "+user+": "+kind] = n
			}
		}
	}
	return all, nil
}

// grown returns what was added to counts.
func grown(now, before map[string]int) map[string]int {
	more := map[string]int{}
	for what, n := range now {
		if added := n - before[what]; added > 0 {
			more[what] = added
		}
	}
	return more
}
