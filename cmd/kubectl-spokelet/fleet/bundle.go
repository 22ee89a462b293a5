package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bundle is the Source that a file of another hub is: a compressed archive with one JSON list for each resource.
type Bundle struct {
	file  string
	about about
	lists map[string][]byte
}

// about is the head of a bundle.
type about struct {
	// Format is 1; a program refuses one that it does not know.
	Format  int       `json:"format"`
	Hub     string    `json:"hub"`
	Version string    `json:"version"`
	Taken   time.Time `json:"taken"`
	Gaps    []Gap     `json:"gaps,omitempty"`
}

const (
	bundleFormat = 1
	aboutFile    = "bundle.json"
	stateFile    = "hub.json"
	// maxBundle is how many bytes a bundle may have, unpacked.
	maxBundle = 1 << 30
	// maxRatio is how many times as large as its file a bundle may be, unpacked, beside maxBeside bytes. The JSON of a
	// fleet is 20 to 40 times as large; what is a thousand times as large was made to fill a memory.
	maxRatio, maxBeside = 100, 16 << 20
)

// resources are those of a bundle. Secrets and ConfigMaps are none of them.
func resources() []Resource {
	return []Resource{
		ResourceOf[Cluster](), ResourceOf[AddOn](), ResourceOf[Definition](), ResourceOf[Placement](),
		ResourceOf[Decision](), ResourceOf[Work](), ResourceOf[Request](), ResourceOf[Lease](), Events(),
		ResourceOf[Policy](), ResourceOf[Window](),
	}
}

// OpenBundle reads a bundle. It may come from another person: what no bundle has is passed over, and one that is too
// large is refused before it takes the memory.
func OpenBundle(file string) (*Bundle, error) { return openBundle(file, maxBundle) }

// openBundle reads a bundle of so many bytes, unpacked, at most.
func openBundle(file string, most int64) (*Bundle, error) {
	packed, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	defer func() { _ = packed.Close() }()
	info, err := packed.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	expands := most
	if info.Mode().IsRegular() {
		expands = min(most, info.Size()*maxRatio+maxBeside)
	}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("reading %s, which is not a bundle: %w", file, err)
	}
	b := &Bundle{file: file, lists: map[string][]byte{}}
	known := map[string]bool{aboutFile: true, stateFile: true}
	for _, resource := range resources() {
		known[fileOf(resource)] = true
	}
	left, archive := most, tar.NewReader(io.LimitReader(unpacked, most))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		switch left -= header.Size; {
		case left < 0:
			return nil, fmt.Errorf("reading %s: it has more than %d MiB", file, most>>20)
		case left < most-expands:
			return nil, fmt.Errorf("reading %s: its content is more than %d times as large as the file", file, maxRatio)
		}
		if !known[header.Name] {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", header.Name, file, err)
		}
		b.lists[header.Name] = content
	}
	if err := json.Unmarshal(b.lists[aboutFile], &b.about); err != nil || b.about.Format != bundleFormat {
		return nil, fmt.Errorf("%s is not a bundle of format %d", file, bundleFormat)
	}
	return b, nil
}

// Name implements Source.
func (b *Bundle) Name() string { return b.about.Hub + " in " + b.file }

// Version implements Source.
func (b *Bundle) Version(context.Context) (string, error) { return b.about.Version, nil }

// Taken is when the bundle was taken.
func (b *Bundle) Taken() time.Time { return Known(b.about.Taken) }

// state returns the state of the hub; nil where the bundle has none. What was not read of it is a gap.
func (b *Bundle) state(r *Reader) (*State, error) {
	raw, is := b.lists[stateFile]
	if !is {
		return nil, nil
	}
	s := &State{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", stateFile, err)
	}
	for _, of := range ofState() {
		for _, gap := range b.about.Gaps {
			if gap.isOf(of.String()) {
				r.note(gap)
			}
		}
	}
	return s, nil
}

// Pages implements Source. What could not be read when the bundle was taken is answered as it was then.
func (b *Bundle) Pages(_ context.Context, q Query) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		raw, is := b.lists[fileOf(q.Resource)]
		if !is {
			gap := slices.IndexFunc(b.about.Gaps, func(g Gap) bool { return g.isOf(q.Resource.String()) })
			group := schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Plural}
			if gap >= 0 && b.about.Gaps[gap].Missing {
				yield(nil, apierrors.NewNotFound(group, ""))
				return
			}
			yield(nil, apierrors.NewForbidden(group, "", errors.New("the person who took the bundle could not read it")))
			return
		}
		var all struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(raw, &all); err != nil {
			yield(nil, fmt.Errorf("decoding %s: %w", fileOf(q.Resource), err))
			return
		}
		all.Items = slices.DeleteFunc(all.Items, func(item json.RawMessage) bool {
			meta, err := metaOf(item)
			return err == nil && !meta.matches(q) || !matchesFields(item, q.Fields) // What cannot be decoded is a gap.
		})
		for part := range slices.Chunk(all.Items, pageSize) {
			page, err := json.Marshal(map[string]any{"items": part})
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// fileOf is the file of a resource in a bundle.
func fileOf(r Resource) string { return r.String() + ".json" }

// WriteBundle writes what a user may read of a fleet. Values of manifests, annotations that no command reads, and
// certificates are left out, see redact.
func WriteBundle(ctx context.Context, source Source, to io.Writer, now time.Time) ([]Gap, error) {
	r := &Reader{Source: source}
	version, err := source.Version(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, resource := range resources() {
		items, complete, err := r.redacted(ctx, Query{Resource: resource})
		if err != nil {
			return r.Gaps, err
		}
		if complete {
			if files[fileOf(resource)], err = json.Marshal(map[string]any{"items": items}); err != nil {
				return r.Gaps, fmt.Errorf("encoding %s: %w", resource, err)
			}
		}
	}
	state, err := ReadState(ctx, r)
	if err != nil {
		return r.Gaps, err
	}
	if files[stateFile], err = json.Marshal(state); err != nil {
		return r.Gaps, fmt.Errorf("encoding %s: %w", stateFile, err)
	}
	head := about{Format: bundleFormat, Hub: source.Name(), Version: version, Taken: now.UTC(), Gaps: r.Gaps}
	if files[aboutFile], err = json.Marshal(head); err != nil {
		return r.Gaps, fmt.Errorf("encoding %s: %w", aboutFile, err)
	}
	return r.Gaps, pack(to, files, now)
}

// redacted reads a resource without what a bundle leaves out; false where it cannot be read.
func (r *Reader) redacted(ctx context.Context, q Query) ([]json.RawMessage, bool, error) {
	var items []json.RawMessage
	complete, err := r.each(ctx, q, func() { items = []json.RawMessage{} }, func(page []byte) error {
		var l struct {
			Items []map[string]any `json:"items"`
		}
		decoder := json.NewDecoder(bytes.NewReader(page))
		decoder.UseNumber()
		if err := decoder.Decode(&l); err != nil {
			return fmt.Errorf("decoding %s: %w", q.Resource, err)
		}
		for _, item := range l.Items {
			if q.Resource == Events() && !concernsFleet(item) {
				continue
			}
			redact(item)
			raw, err := json.Marshal(item) // It takes a fifth of the memory so.
			if err != nil {
				return fmt.Errorf("encoding an object of %s: %w", q.Resource, err)
			}
			items = append(items, raw)
		}
		return nil
	})
	return items, complete, err
}

// pack writes an archive.
func pack(to io.Writer, files map[string][]byte, now time.Time) error {
	packed := gzip.NewWriter(to)
	archive := tar.NewWriter(packed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name])), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if _, err := archive.Write(files[name]); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}
