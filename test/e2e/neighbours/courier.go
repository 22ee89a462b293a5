package neighbours

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const courierName = "courier"

//go:embed addons/courier.yaml
var courierYAML string

// courierRuns installs add-on courier, which stays.
func (p *play) courierRuns(ctx context.Context, s *suite.Session) error {
	objects, err := objectsOf(s.Fleet, courierYAML)
	if err != nil {
		return err
	}
	if err := suite.Apply(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	if err := s.Fleet.WaitAddOn(ctx, homeName, courierName); err != nil {
		return err
	}
	p.courierSince = time.Now()
	return cluster.Until(ctx, "five rounds of the agent", func(ctx context.Context) error {
		seen, err := courierOf(ctx, s.Fleet)
		if err == nil && seen.rounds < 5 {
			err = fmt.Errorf("there are %d", seen.rounds)
		}
		return err
	})
}

// courier is what the agent of add-on courier says.
type courier struct {
	rounds, failures int
	failure          string
	tokens           []string
}

func courierOf(ctx context.Context, f *suite.Fleet) (courier, error) {
	var record corev1.ConfigMap
	if err := f.Hub().Client.Get(ctx, client.ObjectKey{Namespace: homeName, Name: courierName}, &record); err != nil {
		return courier{}, fmt.Errorf("reading the record of the agent: %w", err)
	}
	c := courier{failure: record.Data["failure"], tokens: strings.Split(record.Data["tokens"], ",")}
	var err error
	if c.rounds, err = strconv.Atoi(record.Data["rounds"]); err != nil {
		return c, fmt.Errorf("reading the rounds of the agent: %w", err)
	}
	if c.failures, err = strconv.Atoi(record.Data["failures"]); err != nil {
		return c, fmt.Errorf("reading the failures of the agent: %w", err)
	}
	if c.failures > 0 {
		return c, fmt.Errorf("%w: %d of %d rounds failed: %s", cluster.ErrFinal, c.failures, c.rounds, c.failure)
	}
	for _, token := range c.tokens {
		if !strings.HasPrefix(token, "JTI=") {
			return c, fmt.Errorf("%w: the API server saw %q, which is no token", cluster.ErrFinal, token)
		}
	}
	return c, nil
}

// courierRotates waits until the agent used a second token. Its life is ten minutes, of which the scenarios before used
// the most.
func (p *play) courierRotates(ctx context.Context, s *suite.Session) error {
	var seen courier
	err := cluster.Until(ctx, "a second token in use", func(ctx context.Context) error {
		var err error
		if seen, err = courierOf(ctx, s.Fleet); err == nil && len(seen.tokens) < 2 {
			err = fmt.Errorf("there is one after %s", time.Since(p.courierSince).Round(time.Second))
		}
		return err
	})
	if err != nil {
		return err
	}
	// Rounds with the second token.
	err = cluster.Until(ctx, "further rounds", func(ctx context.Context) error {
		later, err := courierOf(ctx, s.Fleet)
		if err == nil && later.rounds < seen.rounds+5 {
			err = fmt.Errorf("there are %d", later.rounds)
		}
		return err
	})
	if err != nil {
		return err
	}
	pod, err := suite.Pod(ctx, s.Fleet.Hub(), names.NamespaceAgentAddon, "courier-agent")
	if err != nil {
		return err
	}
	if restarts := suite.Restarts(pod); restarts > 0 {
		return fmt.Errorf("pod %s was restarted %d times", pod.Name, restarts)
	}
	s.Note("%d rounds with %d tokens, none failed", seen.rounds, len(seen.tokens))
	return nil
}
