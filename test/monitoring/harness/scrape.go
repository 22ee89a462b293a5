package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

const (
	// scrapeTimeout is how long a program may take to answer.
	scrapeTimeout = 10 * time.Second
	// accept asks for the text format, which is what Prometheus parses fastest.
	accept = "text/plain;version=0.0.4"
)

// Target is a program that serves metrics, with the labels that its samples get.
type Target struct {
	// URL is that of its metrics.
	URL string
	// Labels are added to each of its samples, such as job and pod.
	Labels map[string]string
}

// scraper remembers which series a target had, so that it can say which are gone.
type scraper struct {
	store *Store
	// had are the series of the last scrape, by target.
	had map[string]map[string]labels.Labels
}

// scrape reads all targets at the same time and stores what they say under an instant. A target that does not answer
// is down, which is no error.
func (s *scraper) scrape(ctx context.Context, at time.Time, targets []Target) error {
	found := make([][]sample, len(targets))
	var group sync.WaitGroup
	for i, target := range targets {
		group.Go(func() { found[i] = read(ctx, target) })
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("scraping: %w", err)
	}
	had := make(map[string]map[string]labels.Labels, len(targets))
	var all []sample
	for i, target := range targets {
		all = append(all, found[i]...)
		series := make(map[string]labels.Labels, len(found[i]))
		for _, one := range found[i] {
			series[one.labels.String()] = one.labels
		}
		had[target.URL] = series
	}
	var gone []labels.Labels
	for _, url := range slices.Sorted(maps.Keys(s.had)) {
		for key, series := range s.had[url] {
			if _, still := had[url][key]; !still {
				gone = append(gone, series)
			}
		}
	}
	s.had = had
	return s.store.add(ctx, at, all, gone)
}

// read returns the samples of a target, and up, which is 0 if it does not answer as it should.
func read(ctx context.Context, target Target) []sample {
	samples, err := fetch(ctx, target)
	up := 1.0
	if err != nil {
		samples, up = nil, 0
	}
	name := labels.FromStrings(model.MetricNameLabel, "up")
	return append(samples, sample{labels: labelsOf(name, target), value: up})
}

// fetch reads and parses the metrics of a target.
func fetch(ctx context.Context, target Target) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("scraping %s: %w", target.URL, err)
	}
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("scraping %s: %w", target.URL, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("scraping %s: %w", target.URL, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scraping %s: it answers %s", target.URL, answer.Status)
	}
	return parse(text, answer.Header.Get("Content-Type"), target)
}

// parse reads the samples of a text, with the labels of its target.
func parse(text []byte, kind string, target Target) ([]sample, error) {
	options := textparse.ParserOptions{FallbackContentType: "text/plain"}
	p, err := textparse.New(text, kind, labels.NewSymbolTable(), options)
	if err != nil {
		return nil, fmt.Errorf("parsing the metrics of %s: %w", target.URL, err)
	}
	var samples []sample
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parsing the metrics of %s: %w", target.URL, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var series labels.Labels
		p.Labels(&series)
		_, _, number := p.Series()
		samples = append(samples, sample{labels: labelsOf(series, target), value: number})
	}
}

// labelsOf adds the labels of a target to a series. A label that both have keeps the value of the target, and that of
// the series has the prefix exported_, as in Prometheus.
func labelsOf(series labels.Labels, target Target) labels.Labels {
	builder := labels.NewBuilder(series)
	for name, value := range target.Labels {
		if own := series.Get(name); own != "" {
			builder.Set("exported_"+name, own)
		}
		builder.Set(name, value)
	}
	return builder.Labels()
}
