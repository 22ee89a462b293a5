package dashboard

// Colours that differ for people who confuse red and green, and in grey.
const (
	blue       = "#0072B2"
	sky        = "#56B4E9"
	green      = "#009E73"
	yellow     = "#F0E442"
	orange     = "#E69F00"
	vermillion = "#D55E00"
	purple     = "#CC79A7"
	grey       = "#8E8E8E"
)

// What is well, what to look at, and what to act on.
const (
	fine = blue
	look = orange
	act  = vermillion
)

// from returns a step.
func from(value float64, color string) Step { return Step{Color: color, Value: &value} }

// plain is one colour for all values.
func plain(color string) []Step { return []Step{{Color: color}} }

// noneIsFine are the steps of a number that should be zero.
func noneIsFine(color string) []Step { return []Step{{Color: fine}, from(1, color)} }

// moreIsFine are the steps of a number that should not be small.
func moreIsFine(looked, fineFrom float64) []Step {
	return []Step{{Color: act}, from(looked, look), from(fineFrom, fine)}
}

// lessIsFine are the steps of a number that should not be great.
func lessIsFine(looked, acted float64) []Step {
	return []Step{{Color: fine}, from(looked, look), from(acted, act)}
}

// byValue are the colours of values of labels: what went well, what waits, and what did not go.
func byValue(values ...string) map[string]string {
	all := map[string]string{
		"applied": blue, "gone": blue, "rendered": blue, "live": blue, "wanted": blue, "complete": blue,
		"moving": sky, "older": purple, "beyond": purple, "waiting": grey,
		"held": orange, "leaving": orange,
		"failed": vermillion, "refused": vermillion,
	}
	colors := map[string]string{}
	for _, value := range values {
		colors[value] = all[value]
	}
	return colors
}
