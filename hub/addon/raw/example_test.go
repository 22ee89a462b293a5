package raw_test

import (
	"fmt"
	"testing/fstest"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/raw"
)

// The folder is that of an embed.FS in a program: "//go:embed manifests".
func ExampleNew() {
	files := fstest.MapFS{"manifests/greeting.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: "{{ .AddonInstallNamespace }}"}
data: {text: "Hello, {{ .ClusterName }}"}
`)}}
	templates, err := raw.New(files, "manifests")
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, err := addon.New(addon.Options{Name: "greeting", Manifests: templates})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.About().Name)
	// Output: greeting
}
