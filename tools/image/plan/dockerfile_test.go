package plan

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stage is a stage of a Dockerfile: what it is made from, and its instructions in order, each a keyword and the rest.
type stage struct {
	from         string
	instructions [][2]string
}

// all returns the rests of all instructions with a keyword.
func (s stage) all(keyword string) []string {
	var rests []string
	for _, instruction := range s.instructions {
		if instruction[0] == keyword {
			rests = append(rests, instruction[1])
		}
	}
	return rests
}

// readStages reads the stages of a Dockerfile by their names. It knows what ours uses: comments, continued lines and
// instructions.
func readStages(t *testing.T, path string) map[string]stage {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(data), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	stages, current := map[string]stage{}, ""
	for line := range strings.Lines(text) {
		keyword, rest, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			continue
		}
		if keyword == "FROM" {
			from, name, named := strings.Cut(rest, " AS ")
			require.True(t, named, "a stage has a name: %s", line)
			current, stages[name] = name, stage{from: from}
			continue
		}
		s := stages[current]
		s.instructions = append(s.instructions, [2]string{keyword, strings.TrimSpace(rest)})
		stages[current] = s
	}
	return stages
}

// labels returns the labels of a stage.
func (s stage) labels() map[string]string {
	found := map[string]string{}
	for _, rest := range s.all("LABEL") {
		for _, pair := range regexp.MustCompile(`(\S+?)="([^"]*)"`).FindAllStringSubmatch(rest, -1) {
			found[pair[1]] = pair[2]
		}
	}
	return found
}

func TestTheDockerfileDescribesTheSameImages(t *testing.T) {
	stages := readStages(t, "../../../Dockerfile")
	commands := strings.Join(strings.Fields(strings.Join(stages["build"].all("RUN"), "\n")), " ")
	assert.Len(t, stages, 1+len(All()), "a stage that builds, and one for each image")
	for _, image := range All() {
		t.Run(image.Name, func(t *testing.T) {
			s, exists := stages[image.Stage]
			require.True(t, exists, "stage %s", image.Stage)
			assert.Equal(t, "scratch", s.from)
			assert.Equal(t, []string{User}, s.all("USER"))
			assert.Equal(t, []string{"/"}, s.all("WORKDIR"))
			assert.Equal(t, []string{"VERSION=unversioned", "REVISION=unknown"}, s.all("ARG"))
			assert.Equal(t, image.Labels("${VERSION}", "${REVISION}"), s.labels())
			var entrypoint []string
			require.NoError(t, json.Unmarshal([]byte(strings.Join(s.all("ENTRYPOINT"), "")), &entrypoint))
			assert.Equal(t, []string{image.Program()}, entrypoint)
			copies := []string{
				"--from=build /out/ca-certificates.crt " + Certificates,
				"--from=build /out" + image.Program() + " " + image.Program(),
			}
			if len(image.Names) > 0 {
				copies = append(copies, "--from=build /out/names/ /")
				links := regexp.MustCompile(`for name in (.*?); do ln -s (\S+) /out/names/\$name; done`).
					FindStringSubmatch(commands)
				require.NotNil(t, links, "the names are made by a loop: %s", commands)
				assert.ElementsMatch(t, image.Names, strings.Fields("/"+strings.ReplaceAll(links[1], " ", " /")))
				assert.Equal(t, image.Program(), links[2])
			}
			assert.Equal(t, copies, s.all("COPY"), "nothing else is in it")
			for _, other := range []string{"CMD", "RUN", "ADD", "ENV", "VOLUME", "EXPOSE"} {
				assert.Empty(t, s.all(other), other)
			}
			assert.Contains(t, commands, `-ldflags "`+image.Flags("${VERSION}")+`"`)
			assert.Contains(t, strings.ReplaceAll(commands, "$program", strings.TrimPrefix(image.Program(), "/")),
				"-o /out"+image.Program()+" "+image.Package)
		})
	}
	assert.Equal(t, strings.Count(commands, "go build "), strings.Count(commands, "go build -trimpath -buildvcs=false "))
	assert.Contains(t, commands, "GOOS=linux GOARCH=$TARGETARCH")
	assert.Contains(t, commands, "go run ./image/cmd/roots > /out/ca-certificates.crt")
	assert.Contains(t, stages["build"].all("ENV"), "CGO_ENABLED=0")
}
