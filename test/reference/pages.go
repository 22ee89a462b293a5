package reference

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Headings returns the headings of a page in Markdown.
func Headings(page string) []string {
	var all []string
	fenced := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if match := heading.FindStringSubmatch(line); match != nil && !fenced {
			all = append(all, match[1])
		}
	}
	return all
}

// Anchor returns the anchor of a heading as GitHub makes it.
func Anchor(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == ' ':
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return strings.ReplaceAll(kept, " ", "-")
}

// Citation names a heading of a page of the reference.
type Citation struct {
	Page, Heading string
}

var (
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
	// folded is a line break inside a comment.
	folded = regexp.MustCompile(`\n[ \t]*(?://|#) *`)
	// cited is a page with at least one heading in quotes.
	cited  = regexp.MustCompile(`docs/reference/([a-z]+)\.md, ((?:"[^"\n]+"(?:, | and )?)+)`)
	quoted = regexp.MustCompile(`"([^"]+)"`)
)

// Citations returns the headings that a file of code cites in its comments.
func Citations(text string) []Citation {
	var all []Citation
	for _, match := range cited.FindAllStringSubmatch(folded.ReplaceAllString(text, " "), -1) {
		for _, one := range quoted.FindAllStringSubmatch(match[2], -1) {
			all = append(all, Citation{Page: match[1], Heading: one[1]})
		}
	}
	return all
}

// Rows returns the cells of each row of the tables in a page whose header is the given one, or of all tables for no header.
func Rows(page, header string) [][]string {
	var all [][]string
	inside := false
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case line == header:
			inside = true
		case inside && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	return all
}

// Names returns what stands between backquotes in a text.
func Names(text string) []string {
	var all []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// Files returns the text of all files below root whose names end in one of the endings, by their path below root.
func Files(root string, endings ...string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")) {
			return filepath.SkipDir
		}
		for _, ending := range endings {
			if entry.IsDir() || !strings.HasSuffix(path, ending) {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			found[filepath.ToSlash(relative)] = string(text)
		}
		return nil
	})
	return found, err
}
