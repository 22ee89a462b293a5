package dashboard

import (
	"slices"
	"strings"

	"github.com/spokelet/spokelet/internal/causes"
)

// well is the code of what has no problem.
const well = "well"

// codeColors are the colours of codes, in turn, so that neighbours differ.
func codeColors() []string { return []string{orange, vermillion, purple, green, yellow, sky} }

// ofClusters returns the codes that a cluster can have, and ofAddOns those of an add-on on a cluster.
func ofClusters() []causes.Code { return between("SPK020", "SPK040") }

func ofAddOns() []causes.Code {
	return append([]causes.Code{causes.ClusterSilent}, between("SPK040", "SPK070")...)
}

// between returns the codes from one up to another, in order.
func between(first, end causes.Code) []causes.Code {
	var codes []causes.Code
	for code := range causes.Titles() {
		if code >= first && code < end {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// pageOf is where it stands what to do about a code.
func pageOf(code causes.Code) string {
	return docs + "/operations/messages.md#" + strings.ToLower(string(code))
}

// nameCodes gives series with codes their words, colours and links.
func nameCodes(codes []causes.Code) []Override {
	overrides := []Override{override(well, Property{"displayName", "well"}, colored(fine))}
	titles, palette := causes.Titles(), codeColors()
	for i, code := range codes {
		overrides = append(overrides, override(string(code),
			Property{"displayName", string(code) + " " + titles[code]},
			colored(palette[i%len(palette)]),
			Property{"links", []Link{{Title: "What to do about " + string(code), URL: pageOf(code), TargetBlank: true}}}))
	}
	return overrides
}

// wordCodes gives cells with codes their words.
func wordCodes(codes []causes.Code) Mapping {
	words, titles := map[string]MappedText{well: {Text: "well", Color: fine}}, causes.Titles()
	for i, code := range codes {
		words[string(code)] = MappedText{Text: string(code) + " " + titles[code], Index: i + 1}
	}
	return Mapping{Type: "value", Options: words}
}

// override is an override of the field of a name.
func override(name string, properties ...Property) Override {
	return Override{Matcher: Matcher{ID: "byName", Options: name}, Properties: properties}
}

func colored(color string) Property {
	return Property{"color", Color{Mode: "fixed", FixedColor: color}}
}
