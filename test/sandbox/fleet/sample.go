package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/spokelet/spokelet/test/sandbox"
)

// DefaultSampleEvery is how often a fleet samples.
const DefaultSampleEvery = 15 * time.Second

// sampleTimeout is how long a program may take to tell its figures; a later answer is left out.
const sampleTimeout = 5 * time.Second

// sampledAPIServerArgs let Events go after five minutes and not after an hour, or what is stored would grow by them for
// all of the first hour.
var sampledAPIServerArgs = []string{"--event-ttl=5m"}

// sampledStoreArgs let etcd forget what is older than a minute by itself. An API server asks for that, too, but
// only when it has lived for ten minutes, and some are killed all the time.
var sampledStoreArgs = []string{"--auto-compaction-mode=periodic", "--auto-compaction-retention=1m"}

// Figure holds what is sampled of a program.
type Figure string

const (
	// Memory is resident memory in bytes.
	Memory Figure = "memory"
	// Goroutines are those of a program of ours.
	Goroutines Figure = "goroutines"
	// OpenFiles are open files and sockets.
	OpenFiles Figure = "open files"
	// Watches are the open watches of an API server.
	Watches Figure = "watches"
	// Stored are the bytes that etcd has in use. Its file also has what was compacted and is free.
	Stored Figure = "stored"
)

// Sample holds what one program used at one time: a line of the file.
type Sample struct {
	At time.Time `json:"at"`
	// Program is its name, such as "agent of cluster1", and PID tells its lives apart.
	Program string `json:"program"`
	PID     int    `json:"pid"`
	// Figures are those that it told.
	Figures map[Figure]float64 `json:"figures"`
}

// ReadSamples reads a file of samples. The last line may be cut short, of a fleet that was killed.
func ReadSamples(path string) ([]Sample, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	defer file.Close()
	var all []Sample
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading samples: %w", err)
		}
		var one Sample
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("reading sample %d of %s: %w", len(all)+1, path, err)
		}
		all = append(all, one)
	}
}

// sampler appends samples to a file until it is stopped.
type sampler struct {
	file   *os.File
	cancel context.CancelFunc
	done   chan error
}

// startSampling samples all programs of the fleet until Close, if the options ask for it.
func (f *Fleet) startSampling(ctx context.Context) error {
	if f.opts.Samples == "" {
		return nil
	}
	file, err := os.OpenFile(f.opts.Samples, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the file of samples: %w", err)
	}
	every := f.opts.SampleEvery
	if every == 0 {
		every = DefaultSampleEvery
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.sampler = &sampler{file: file, cancel: cancel, done: make(chan error, 1)}
	go func() { f.sampler.done <- f.sample(ctx, every) }()
	return nil
}

// stop ends the samples; there may be none.
func (s *sampler) stop() error {
	if s == nil {
		return nil
	}
	s.cancel()
	return errors.Join(<-s.done, s.file.Close())
}

// sample appends samples until ctx ends.
func (f *Fleet) sample(ctx context.Context, every time.Duration) error {
	lines := json.NewEncoder(f.sampler.file)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		at := time.Now().UTC()
		for _, one := range f.sampleOnce(ctx) {
			if one.At = at; len(one.Figures) == 0 {
				continue
			}
			if err := lines.Encode(one); err != nil {
				return fmt.Errorf("writing a sample: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// counted are the figures that a program counts itself.
type counted func(ctx context.Context) map[Figure]float64

// sampleOnce samples all programs, at the same time.
func (f *Fleet) sampleOnce(ctx context.Context) []Sample {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var processes []*sandbox.Process
	var figures []counted
	add := func(p *sandbox.Process, c counted) { processes, figures = append(processes, p), append(figures, c) }
	for _, p := range f.Processes() {
		add(p, f.ownFigures(p))
	}
	planes := []*sandbox.ControlPlane{f.Hub}
	for _, cluster := range f.Clusters() {
		planes = append(planes, cluster.ControlPlane)
	}
	for _, plane := range planes {
		add(plane.APIServer(), func(ctx context.Context) map[Figure]float64 {
			families, err := plane.Metrics(ctx)
			return figureOf(Watches, families["apiserver_longrunning_requests"], err, "verb", "WATCH")
		})
		add(plane.Stores()[0], func(ctx context.Context) map[Figure]float64 {
			families, err := plane.StoreMetrics(ctx)
			return figureOf(Stored, families["etcd_mvcc_db_total_size_in_use_in_bytes"], err, "", "")
		})
	}
	samples := make([]Sample, len(processes))
	var group sync.WaitGroup
	for i, p := range processes {
		group.Go(func() { samples[i] = sampleOf(ctx, p, figures[i]) })
	}
	group.Wait()
	return samples
}

// sampleOf samples one program. One that ends meanwhile has no figures, of whichever life they would be.
func sampleOf(ctx context.Context, p *sandbox.Process, figures counted) Sample {
	one := Sample{Program: p.Name, PID: p.PID()}
	if p.Exited() != nil {
		return one
	}
	found := figures(ctx)
	if memory, err := p.RSS(); err == nil {
		found[Memory] = float64(memory)
	}
	if files, err := p.OpenFiles(); err == nil {
		found[OpenFiles] = float64(files)
	}
	if p.Exited() == nil && p.PID() == one.PID {
		one.Figures = found
	}
	return one
}

// ownFigures returns what a program of ours counts itself, if it serves metrics.
func (f *Fleet) ownFigures(p *sandbox.Process) counted {
	f.mu.Lock()
	url := f.metrics[p]
	f.mu.Unlock()
	return func(ctx context.Context) map[Figure]float64 {
		if url == "" {
			return map[Figure]float64{}
		}
		families, err := sandbox.ReadMetrics(ctx, url)
		return figureOf(Goroutines, families["go_goroutines"], err, "", "")
	}
}

// figureOf adds up a gauge, where a label has a value; nothing if it could not be read.
func figureOf(name Figure, family *dto.MetricFamily, err error, label, value string) map[Figure]float64 {
	found := map[Figure]float64{}
	if err != nil || family == nil {
		return found
	}
	for _, metric := range family.GetMetric() {
		is := label == ""
		for _, pair := range metric.GetLabel() {
			is = is || pair.GetName() == label && pair.GetValue() == value
		}
		if is {
			found[name] += metric.GetGauge().GetValue()
		}
	}
	return found
}

// own prepares a program of ours, which serves metrics to the samples if the options ask for them.
func (f *Fleet) own(name, path string, args ...string) (*sandbox.Process, error) {
	if f.opts.Samples == "" {
		return f.process(name, path, args...), nil
	}
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	p := f.process(name, path, append(args, "--metrics-bind-address="+address)...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.metrics[p] = "http://" + address
	return p, nil
}
