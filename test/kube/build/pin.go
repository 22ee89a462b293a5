package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// moduleFile holds what this program reads of "go mod edit -json".
type moduleFile struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old, New struct{ Path string } }
}

// pin writes the files that pin a release of Kubernetes, and with it the etcd that the release is made for.
func pin(release string) error {
	var downloaded struct{ GoMod string }
	if err := decoded(&downloaded, "mod", "download", "-json", "k8s.io/kubernetes@"+release); err != nil {
		return err
	}
	var kubernetes moduleFile
	if err := decoded(&kubernetes, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return err
	}
	text, err := pinned(release, &kubernetes)
	if err != nil {
		return err
	}
	file := modulesFile(minor(release))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	args := []string{"list", "-mod=mod", "-modfile=" + file, "-deps"}
	for _, p := range programs {
		args = append(args, p.pkg)
	}
	list := goCommand(args...)
	list.Stderr = os.Stderr
	if err := list.Run(); err != nil {
		return fmt.Errorf("adding what %s needs to %s: %w", release, file, err)
	}
	fmt.Println(file, "pins", release)
	return nil
}

// pinned returns the beginning of such a file. Kubernetes has modules within its repository, which it replaces by
// folders; they are released with it, as v0.
func pinned(release string, kubernetes *moduleFile) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "module github.com/spokelet/spokelet/test/kube\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n",
		kubernetes.Go, release)
	of := strings.Replace(release, "v1.", "v0.", 1)
	for _, r := range kubernetes.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			fmt.Fprintf(&b, "\nreplace %s => %s %s\n", r.Old.Path, r.Old.Path, of)
		}
	}
	for _, p := range programs {
		i := slices.IndexFunc(kubernetes.Require, func(r struct{ Path, Version string }) bool { return r.Path == p.module })
		if i < 0 {
			if p.module != "k8s.io/kubernetes" {
				return "", fmt.Errorf("the go.mod of Kubernetes %s does not name %s", release, p.module)
			}
			continue
		}
		fmt.Fprintf(&b, "\nrequire %s %s\n", p.module, kubernetes.Require[i].Version)
	}
	return b.String(), nil
}

// minor is 1.33 of v1.33.7.
func minor(release string) string {
	numbers := strings.Split(strings.TrimPrefix(release, "v"), ".")
	return strings.Join(numbers[:min(2, len(numbers))], ".")
}

// decoded runs go and decodes what it prints.
func decoded(into any, args ...string) error {
	cmd := goCommand(args...)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running go %s: %w", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading what go %s prints: %w", strings.Join(args, " "), err)
	}
	return nil
}
