package cli

import (
	"bufio"
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// firstContainer is the container whose log is that of a pod.
func firstContainer(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// maxLogLine is how many bytes of a line of a log are kept.
const maxLogLine = 16 << 10

// linesOf gives the lines of a log, each cut where it is too long.
func linesOf(log io.Reader) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		from := bufio.NewReaderSize(log, maxLogLine)
		for {
			part, err := from.ReadSlice('\n')
			line := strings.TrimRight(string(part), "\r\n")
			for errors.Is(err, bufio.ErrBufferFull) { // What does not fit is left out.
				_, err = from.ReadSlice('\n')
			}
			if (line != "" || err == nil) && !yield(line, nil) {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield("", err)
				}
				return
			}
		}
	}
}
