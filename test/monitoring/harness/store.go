package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// lookback is how old a sample may be that a query takes, as in Prometheus.
	lookback = 5 * time.Minute
	// queryTimeout and maxSamples bound a query, as in Prometheus.
	queryTimeout = 2 * time.Minute
	maxSamples   = 50_000_000
)

// Store is a database of samples in a directory, with an engine that answers queries about them.
type Store struct {
	db     *tsdb.DB
	engine *promql.Engine
}

// Open opens the store in a directory, which it makes if it is missing. The caller must call Close. What was stored in
// a directory can be opened again.
func Open(dir string) (*Store, error) {
	options := tsdb.DefaultOptions()
	options.NoLockfile = true
	db, err := tsdb.Open(dir, promslog.NewNopLogger(), nil, options, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the samples in %s: %w", dir, err)
	}
	return &Store{db: db, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: queryTimeout, LookbackDelta: lookback, EnableAtModifier: true,
		EnableNegativeOffset: true, Parser: Parser(),
	})}, nil
}

// Parser returns the parser of PromQL, without anything experimental.
func Parser() parser.Parser { return parser.NewParser(parser.Options{}) }

// Close ends the store; its directory stays.
func (s *Store) Close() error { return errors.Join(s.engine.Close(), s.db.Close()) }

// Instant answers a query, whose result is a vector, at an instant.
func (s *Store) Instant(ctx context.Context, query string, at time.Time) (promql.Vector, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.db, nil, query, at)
	if err != nil {
		return nil, fmt.Errorf("parsing query %s: %w", query, err)
	}
	defer q.Close()
	result := q.Exec(ctx)
	if scalar, err := result.Scalar(); err == nil {
		return promql.Vector{{T: scalar.T, F: scalar.V}}, nil
	}
	vector, err := result.Vector()
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", query, err)
	}
	return append(promql.Vector{}, vector...), nil
}

// Range answers a query at all instants from one to another, by steps.
func (s *Store) Range(
	ctx context.Context, query string, from, to time.Time, step time.Duration,
) (promql.Matrix, error) {
	q, err := s.engine.NewRangeQuery(ctx, s.db, nil, query, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("parsing query %s: %w", query, err)
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", query, err)
	}
	all := make(promql.Matrix, 0, len(matrix))
	for _, series := range matrix {
		all = append(all, promql.Series{
			Metric: series.Metric.Copy(), Floats: append([]promql.FPoint(nil), series.Floats...),
		})
	}
	return all, nil
}

// Times returns the instants of the first and the last sample.
func (s *Store) Times() (first, last time.Time) {
	from, to := int64(math.MaxInt64), s.db.Head().MaxTime()
	for _, block := range s.db.Blocks() {
		from = min(from, block.MinTime())
	}
	return time.UnixMilli(min(from, s.db.Head().MinTime())), time.UnixMilli(to)
}

// sample is a value of a series.
type sample struct {
	labels labels.Labels
	value  float64
}

// add stores samples of one instant, and ends the series that are gone.
func (s *Store) add(ctx context.Context, at time.Time, samples []sample, gone []labels.Labels) error {
	app := s.db.Appender(ctx)
	for _, one := range samples {
		if _, err := app.Append(0, one.labels, at.UnixMilli(), one.value); err != nil {
			return errors.Join(fmt.Errorf("storing %s: %w", one.labels, err), app.Rollback())
		}
	}
	for _, series := range gone {
		if _, err := app.Append(0, series, at.UnixMilli(), math.Float64frombits(value.StaleNaN)); err != nil {
			return errors.Join(fmt.Errorf("ending %s: %w", series, err), app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("storing samples: %w", err)
	}
	return nil
}

// queryable is what rules read from.
func (s *Store) queryable() storage.Queryable { return s.db }
