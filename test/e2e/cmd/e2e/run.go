package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/test/e2e/authors"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/hosted"
	"github.com/spokelet/spokelet/test/e2e/images"
	"github.com/spokelet/spokelet/test/e2e/neighbours"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/e2e/twoclusters"
)

const (
	// official, as the name of a node image, means the one that kind is released with.
	official = "official"
	// tag and nextTag are the tags of the two builds of our images.
	tag, nextTag = "e2e", "e2e-next"
)

// errHelp is returned when the command line asks for help.
var errHelp = flag.ErrHelp

// suites returns all suites, in the order in which they are played.
func suites() []*suite.Suite {
	return []*suite.Suite{twoclusters.New(), hosted.New(), authors.New(), neighbours.New()}
}

// options are the command line.
type options struct {
	root, dir, nodeImage string
	suites, scenarios    []string
	outage               time.Duration
	list                 bool
}

// parse reads the command line.
func parse(args []string) (options, error) {
	o := options{root: filepath.Join("..", "..")}
	var selected, only string
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", filepath.Join(o.root, "bin", "e2e"), "folder for kubeconfigs, logs and reports")
	flags.StringVar(&o.nodeImage, "node-image", official, "image of the nodes; \"official\" means the one of kind")
	flags.StringVar(&selected, "suites", "", "names of the suites to play, with commas between them; empty means all")
	flags.StringVar(&only, "run", "",
		"words, with commas between them: only scenarios whose name has one, and those that they need")
	flags.DurationVar(&o.outage, "outage", 3*time.Minute, "how long the hub is away where a scenario takes it away")
	flags.BoolVar(&o.list, "list", false, "print the scenarios and play none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.suites, o.scenarios = words(selected), words(only)
	var err error
	if o.root, err = filepath.Abs(o.root); err == nil {
		o.dir, err = filepath.Abs(o.dir)
	}
	if o.nodeImage == official {
		o.nodeImage = ""
	}
	return o, err
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// run plays the suites.
func run(ctx context.Context, o options) (err error) {
	selected := slices.DeleteFunc(suites(), func(s *suite.Suite) bool {
		return len(o.suites) > 0 && !slices.Contains(o.suites, s.Name)
	})
	if o.list {
		list(os.Stdout, selected)
		return nil
	}
	if err := cluster.CheckEngine(ctx, o.nodeImage); err != nil {
		return err
	}
	id, err := randomID()
	if err != nil {
		return err
	}
	dir := filepath.Join(o.dir, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the run: %w", err)
	}
	fmt.Printf("run %s: %s\n", id, dir)
	loaded, err := build(ctx, o.root, filepath.Join(o.dir, "images"))
	if err != nil {
		return err
	}
	network, err := cluster.NewNetwork(ctx, o.dir, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Remove(context.WithoutCancel(ctx))) }()
	var results []suite.Result
	for _, s := range selected {
		played, playErr := suite.Play(ctx, s, suite.Options{
			Run: id, Dir: dir, Manifests: filepath.Join(o.root, "manifests"), NodeImage: o.nodeImage, Images: loaded,
			Only: o.scenarios, Outage: o.outage, Out: os.Stdout,
		})
		results, err = append(results, played...), errors.Join(err, playErr)
	}
	if err := errors.Join(err, report(o.dir, results)); err != nil {
		return err
	}
	return os.RemoveAll(dir) // It explains failures, and there was none.
}

// build makes the images.
func build(ctx context.Context, root, dir string) (suite.Images, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return suite.Images{}, fmt.Errorf("making the folder of the images: %w", err)
	}
	made := suite.Images{Tag: tag, NextTag: nextTag}
	for _, t := range []string{nextTag, tag} { // The last one is also the latest, as the sample names its image.
		files, err := images.Product(ctx, root, dir, t)
		if err != nil {
			return made, err
		}
		made.Files = append(made.Files, files...)
	}
	for program, named := range map[string]*string{"workload": &made.Workload, "neighbour": &made.Neighbour} {
		file, image, err := images.Program(ctx, root, dir, program)
		if err != nil {
			return made, err
		}
		made.Files, *named = append(made.Files, file), image
	}
	var err error
	made.Samples, made.Programs, err = images.Samples(ctx, root, dir)
	return made, err
}

// report prints the table, and writes it and the JUnit file.
func report(dir string, results []suite.Result) error {
	table, err := os.Create(filepath.Join(dir, "report.txt"))
	if err != nil {
		return fmt.Errorf("creating the report: %w", err)
	}
	defer table.Close()
	return errors.Join(
		suite.WriteJUnit(filepath.Join(dir, "junit.xml"), results),
		suite.Summarize(io.MultiWriter(os.Stdout, table), results),
	)
}

// list prints the scenarios.
func list(out io.Writer, selected []*suite.Suite) {
	for _, s := range selected {
		for _, scenario := range s.Scenarios {
			fmt.Fprintf(out, "%s/%s: %s\n", s.Name, scenario.Name, scenario.Doc)
		}
	}
}

// randomID returns the random part of the names of a run.
func randomID() (string, error) {
	random := make([]byte, 3)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("drawing a name: %w", err)
	}
	return hex.EncodeToString(random), nil
}
