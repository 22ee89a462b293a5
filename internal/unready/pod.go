package unready

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/message"
)

// maxQuote is the largest number of bytes that are quoted of a foreign message.
const maxQuote = 300

// PodTrouble explains what keeps a pod from running; empty for nothing. It contains no number that grows with time, so
// that the message stays the same while the problem does.
func PodTrouble(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "it is pending, no node takes it: " + Quote(c.Reason, c.Message)
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if text := containerTrouble(c); text != "" {
			return text
		}
	}
	switch p.Status.Phase {
	case corev1.PodFailed:
		return "it failed: " + Quote(p.Status.Reason, p.Status.Message)
	case corev1.PodPending:
		return "it is pending"
	case corev1.PodRunning, corev1.PodSucceeded, corev1.PodUnknown:
	}
	return ""
}

// containerTrouble explains what keeps a container from running; empty for nothing.
func containerTrouble(c corev1.ContainerStatus) string {
	waiting := c.State.Waiting
	if waiting == nil {
		return ""
	}
	switch waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return ""
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return fmt.Sprintf("image %s of container %s cannot be pulled: %s", c.Image, c.Name,
			Quote(waiting.Reason, waiting.Message))
	case "CrashLoopBackOff":
		last := c.LastTerminationState.Terminated
		if last == nil {
			return fmt.Sprintf("container %s crashes again and again", c.Name)
		}
		return fmt.Sprintf("container %s crashes again and again, the last time with exit code %d: %s", c.Name,
			last.ExitCode, Quote(last.Reason, last.Message))
	}
	return fmt.Sprintf("container %s does not start: %s", c.Name, Quote(waiting.Reason, waiting.Message))
}

// Quote joins a foreign reason and message. The message becomes one line of limited length.
func Quote(reason, said string) string {
	said = message.Cut(message.OneLine(said), maxQuote)
	switch {
	case said == "":
		return reason
	case reason == "":
		return said
	}
	return reason + ": " + said
}
