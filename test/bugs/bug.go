package bugs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Bug was found once and mended.
type Bug struct {
	// Name is that of its file.
	Name string
	// What is a sentence on what goes wrong, and From tells who found it.
	What string `json:"-"`
	From string `json:"-"`
	// Play are the programs that should notice it, in the order in which they are played.
	Play []string `json:"-"`
	// Tests are folders whose tests are its own, beside those of the packages that it changes.
	Tests []string `json:"-"`
	// Edits put it back.
	Edits []Edit `json:"-"`
}

// Edit replaces a text of a file.
type Edit struct {
	// File is below the root of the module.
	File string
	// Good is the text as it is, which the file has exactly once, Bad the one with the bug.
	Good, Bad string
}

// suffix ends the names of files with a bug.
const suffix = ".bug"

// The lines between which an edit has its texts.
const (
	beginGood = "<<<<<<<"
	beginBad  = "======="
	endBad    = ">>>>>>>"
)

// Read returns the bugs of a directory by their names.
func Read(dir string) ([]Bug, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("listing bugs: %w", err)
	}
	slices.Sort(files)
	all := make([]Bug, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a bug: %w", err)
		}
		bug, err := parse(strings.TrimSuffix(filepath.Base(file), suffix), string(content))
		if err != nil {
			return nil, fmt.Errorf("reading bug %s: %w", filepath.Base(file), err)
		}
		all = append(all, bug)
	}
	return all, nil
}

// parse reads a bug. Lines before the first edit, and between two, are "Key: value".
func parse(name, content string) (Bug, error) {
	bug, file := Bug{Name: name}, ""
	for content != "" {
		line, rest, _ := strings.Cut(content, "\n")
		content = rest
		if line == "" {
			continue
		}
		if line == beginGood {
			good, bad, after, err := texts(content)
			if err != nil {
				return Bug{}, err
			}
			if file == "" {
				return Bug{}, fmt.Errorf("an edit has no File before it: %q", good)
			}
			bug.Edits = append(bug.Edits, Edit{File: file, Good: good, Bad: bad})
			content = after
			continue
		}
		key, value, found := strings.Cut(line, ": ")
		if !found {
			return Bug{}, fmt.Errorf("a line is neither a key with a value nor part of an edit: %q", line)
		}
		switch key {
		case "What":
			bug.What = value
		case "From":
			bug.From = value
		case "Play":
			bug.Play = strings.Split(value, ", ")
		case "Tests":
			bug.Tests = strings.Split(value, ", ")
		case "File":
			file = value
		default:
			return Bug{}, fmt.Errorf("unknown key %q", key)
		}
	}
	if bug.What == "" || bug.From == "" || len(bug.Play) == 0 || len(bug.Edits) == 0 {
		return Bug{}, fmt.Errorf("it needs What, From, Play and an edit, and has %+v", bug)
	}
	return bug, nil
}

// texts reads the two texts of an edit.
func texts(content string) (good, bad, after string, err error) {
	good, rest, found := strings.Cut(content, beginBad+"\n")
	if !found {
		return "", "", "", fmt.Errorf("an edit has no line %s", beginBad)
	}
	bad, after, found = strings.Cut(rest, endBad+"\n")
	if !found {
		return "", "", "", fmt.Errorf("an edit has no line %s", endBad)
	}
	return good, bad, after, nil
}

// Apply returns the files of a module in root with the bug, by their paths below it.
func (b Bug) Apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, edit := range b.Edits {
		now, read := files[edit.File]
		if !read {
			content, err := os.ReadFile(filepath.Join(root, edit.File))
			if err != nil {
				return nil, fmt.Errorf("putting bug %s back: %w", b.Name, err)
			}
			now = string(content)
		}
		if count := strings.Count(now, edit.Good); count != 1 {
			return nil, fmt.Errorf("putting bug %s back: %s has its text %d times and not once: %q",
				b.Name, edit.File, count, edit.Good)
		}
		files[edit.File] = strings.Replace(now, edit.Good, edit.Bad, 1)
	}
	return files, nil
}

// Folders are those of the files that the bug changes, below the root of the module.
func (b Bug) Folders() []string {
	var all []string
	for _, folder := range b.Tests {
		all = append(all, "./"+folder)
	}
	for _, edit := range b.Edits {
		all = append(all, "./"+filepath.Dir(edit.File))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
