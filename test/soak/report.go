package soak

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/test/bench/measure"
)

// Rows returns the report as pairs of what and how much.
func (r RotationReport) Rows() [][2]string {
	pair := func(certificates, requests int) string { return fmt.Sprintf("%d, %d", certificates, requests) }
	return [][2]string{
		{"reads of the add-on's client", fmt.Sprint(r.Reads)},
		{"reads that fell into an outage of the hub", fmt.Sprint(r.ReadsInOutage)},
		{"reads that failed otherwise, or found an expired certificate", fmt.Sprint(len(r.Violations))},
		{"certificates of the add-on, and requests for them", pair(r.AddonCertificates, r.AddonRequests)},
		{"certificates of the cluster, and requests for them", pair(r.ClusterCertificates, r.ClusterRequests)},
		{"least lifetime left of a certificate in use", r.Least.Round(100 * time.Millisecond).String()},
		{"agents killed", fmt.Sprint(r.Kills)},
		{"outages of the hub, of six seconds every thirty", fmt.Sprint(r.Outages)},
	}
}

// Check says what in the report must not be: a read that failed for another reason than an outage, an expired
// certificate, a request too many. One certificate may have been issued that no read has seen yet.
func (r RotationReport) Check() error {
	var wrong []error
	if len(r.Violations) > 0 {
		wrong = append(wrong, fmt.Errorf("%d violations:\n%s", len(r.Violations), strings.Join(r.Violations, "\n")))
	}
	for _, kind := range []struct {
		name                   string
		certificates, requests int
	}{
		{"add-on", r.AddonCertificates, r.AddonRequests}, {"cluster", r.ClusterCertificates, r.ClusterRequests},
	} {
		if kind.certificates < 2 {
			wrong = append(wrong, fmt.Errorf("the certificate of the %s was never replaced", kind.name))
		}
		if extra := kind.requests - kind.certificates; extra < 0 || extra > 1 {
			wrong = append(wrong, fmt.Errorf("%d requests led to %d certificates of the %s",
				kind.requests, kind.certificates, kind.name))
		}
	}
	return errors.Join(wrong...)
}

// Rows returns the report as pairs of what and how much.
func (r RolloutsReport) Rows() [][2]string {
	took := slices.Clone(r.Took)
	round := func(share float64) time.Duration { return measure.Percentile(took, share).Round(10 * time.Millisecond) }
	return [][2]string{
		{"rollouts, to so many clusters", fmt.Sprintf("%d, %d", len(took), r.Clusters)},
		{"until one is complete: median, longest", fmt.Sprintf("%s, %s", round(0.5), round(1))},
		{"that took longer than the time to the next one", fmt.Sprint(r.Late)},
		{"clusters that got a version, one at a time", fmt.Sprint(r.Begun)},
		{"violations", fmt.Sprint(len(r.Violations))},
	}
}

// Check says what in the report must not be: a violation, or a cluster that got a version and was not judged.
func (r RolloutsReport) Check() error {
	var wrong []error
	if len(r.Violations) > 0 {
		wrong = append(wrong, fmt.Errorf("%d violations:\n%s", len(r.Violations), strings.Join(r.Violations, "\n")))
	}
	if want := len(r.Took) * r.Clusters; len(r.Violations) == 0 && (r.Begun != want || want == 0) {
		wrong = append(wrong, fmt.Errorf("%d clusters were seen to get a version, and not %d", r.Begun, want))
	}
	return errors.Join(wrong...)
}
