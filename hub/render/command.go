package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/command"
)

// standardInput is the name of a file that stands for the standard input.
const standardInput = "-"

// Program is a program with the subcommand "render".
type Program struct {
	// Name is the name of the program.
	Name string
	// Agents are the add-ons of the program; nil means those that are made of the AddOnTemplates of the files.
	Agents addon.Lookup
	// AddOns are the names of the add-ons of Agents; none are needed for AddOnTemplates.
	AddOns []string
}

// Command runs the subcommand with the arguments that follow its name. It returns pflag.ErrHelp when they ask for help
// or for the version. Nothing but help is written to out when there is an error.
func (p Program) Command(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var names []string
	o, output := Options{Precedence: addon.LastCounts}, string(OutputWorks)
	program := command.Program{
		Name: p.Name + " render",
		Story: "Print what add-ons deploy on clusters, from files with ClusterManagementAddOns, their configurations, " +
			"ManagedClusters,\nManagedClusterAddOns and PlacementDecisions, without a hub. Comments list what was assumed " +
			"because the files do\nnot have it.",
	}
	err := program.Parse(args, out, func(f *pflag.FlagSet) {
		f.StringSliceVarP(&names, "filename", "f", nil, "file or folder with objects as YAML or JSON, - for the standard "+
			"input; may be repeated")
		f.StringSliceVar(&o.Clusters, "cluster", nil, "name of a cluster; by default all clusters of the files")
		f.StringSliceVar(&o.AddOns, "add-on", nil, "name of an add-on; by default all add-ons of the files")
		f.StringVarP(&output, "output", "o", output, "works for the ManifestWorks, objects for the objects in them")
		command.AddConfigPrecedence(f, (*string)(&o.Precedence))
		f.StringVar(&o.Home, "hub-namespace", "", "namespace of the hub manager, by default its usual one")
	})
	if err != nil {
		return err
	}
	o.Output = Output(output)
	if o.Output != OutputWorks && o.Output != OutputObjects {
		return fmt.Errorf("--output: %q is neither %s nor %s", output, OutputWorks, OutputObjects)
	}
	if err := o.Precedence.Check(); err != nil {
		return err
	}
	files, err := ReadFiles(names, in)
	if err != nil {
		return err
	}
	text, err := p.Render(ctx, files, o)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// ReadFiles reads files and the files of folders, each once, and the standard input for "-". Its errors name the flag
// --filename.
func ReadFiles(names []string, in io.Reader) ([]File, error) {
	if len(names) == 0 {
		return nil, errors.New("--filename: name at least one file or folder, or - for the standard input")
	}
	var files []File
	add := func(name string, text []byte, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		files = append(files, File{Name: name, Text: string(text)})
		return nil
	}
	for _, name := range names {
		if name == standardInput {
			text, err := io.ReadAll(in)
			if err := add("standard input", text, err); err != nil {
				return nil, err
			}
			continue
		}
		paths, err := inFolder(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if slices.ContainsFunc(files, func(f File) bool { return f.Name == path }) {
				continue
			}
			text, err := os.ReadFile(path)
			if err := add(path, text, err); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// inFolder returns the files of a folder, without those of folders in it; a file is returned as it is.
func inFolder(name string) ([]string, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	if !about.IsDir() {
		return []string{filepath.Clean(name)}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		extension := strings.ToLower(filepath.Ext(entry.Name()))
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
			paths = append(paths, filepath.Join(name, entry.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("--filename: folder %s has no file whose name ends in .yaml, .yml or .json", name)
	}
	return paths, nil
}
