package report

import (
	"encoding/json"
	"regexp"
	"strings"
)

// klogError is a line of klog that is an error or a fatal one, with its text behind the place in the code.
var klogError = regexp.MustCompile(`^[EF]\d{4} \d{2}:\d{2}:\d{2}\.\d+ +\d+ [^\]]*\] ?(.*)$`)

// ErrorOf returns what a line of a log says, and whether it is an error: of programs that write JSON, as ours do, of
// those that write as klog does, and of a Go program that ends at once.
func ErrorOf(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if found := klogError.FindStringSubmatch(line); found != nil {
		return found[1], true
	}
	for _, end := range []string{"panic: ", "fatal error: ", "Error: "} {
		if strings.HasPrefix(line, end) {
			return line, true
		}
	}
	if !strings.HasPrefix(line, "{") {
		return line, false
	}
	var said struct {
		Level   string `json:"level"`
		Message string `json:"msg"`
		Error   string `json:"error"`
		Err     string `json:"err"`
	}
	if json.Unmarshal([]byte(line), &said) != nil {
		return line, false
	}
	switch strings.ToLower(said.Level) {
	case "error", "dpanic", "panic", "fatal":
	default:
		return line, false
	}
	if said.Error == "" {
		said.Error = said.Err
	}
	if said.Error != "" {
		said.Message += ": " + said.Error
	}
	return said.Message, true
}
