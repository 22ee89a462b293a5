package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// passes reports whether a command with --wait asks again after an error: while the hub does not answer.
func passes(err error) bool {
	return errors.Is(err, fleet.ErrUnreachable) && !errors.Is(err, context.Canceled)
}

// unread is the error of a command that found nothing wrong, and could not read all clusters or all add-ons; nil where
// it could. The answer names the rights that are missing.
func unread(r *fleet.Reader) error {
	for _, plural := range []string{"managedclusters", "managedclusteraddons"} {
		if r.LacksPart(plural) {
			return fmt.Errorf("%w: %s", errPart, plural)
		}
	}
	return nil
}

// absent is the problem of the one cluster that was asked for and does not exist; none where it exists, where that is
// not known, and where all were asked for.
func absent(f report.Fleet, r *fleet.Reader, cluster string) []report.Problem {
	if cluster == "" || len(f.Clusters) > 0 || r.LacksObject("managedclusters", cluster) {
		return nil
	}
	return []report.Problem{*report.ClusterChain(cluster, report.ClusterFacts{}).Problem}
}
