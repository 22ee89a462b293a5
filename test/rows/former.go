package rows

import (
	_ "embed"
	"go/ast"
	"path"
	"strings"
)

//go:embed former.txt
var formerNames string

// formerly returns the behaviours of a test whose comment still has the former form.
func formerly(function *ast.FuncDecl) []string {
	var ids []string
	if function.Doc != nil {
		for _, comment := range function.Doc.List {
			text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			for _, mark := range []string{"Row: ", "Weakness: "} {
				if list, ok := strings.CutPrefix(text, mark); ok {
					ids = append(ids, formerIDs(list)...)
				}
			}
		}
	}
	var all []string
	for line := range strings.Lines(formerNames) {
		former, now, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if former == function.Name.Name {
			all = append(all, now)
		}
		for _, id := range ids {
			if id == former {
				all = append(all, now)
			}
		}
	}
	return all
}

func formerIDs(list string) []string {
	if strings.HasPrefix(list, "work ") {
		return []string{list}
	}
	var all []string
	for id := range strings.SplitSeq(list, ",") {
		id, _, _ = strings.Cut(id, "(")
		id = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(id), "AF:"))
		if !strings.Contains(id, "*") {
			id = path.Base(id)
		}
		all = append(all, id)
	}
	return all
}
