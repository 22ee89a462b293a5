package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATextIsCutBetweenTwoCharacters(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"a text below the limit stays":              {"abcd", 5, "abcd"},
		"a text of exactly the limit stays":         {"abcde", 5, "abcde"},
		"a longer text is cut and marked":           {"abcdef", 5, "ab..."},
		"a character of two bytes is not divided":   {"aäbcdef", 5, "a..."},
		"a character that just fits is kept":        {"aäbcdef", 6, "aä..."},
		"a text of one long character loses it all": {"ääää", 4, "..."},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, Cut(tc.text, tc.limit)) })
	}
}

func TestAListNamesTheFirstItems(t *testing.T) {
	assert.Equal(t, "a, b", List([]string{"a", "b"}, 2, ", "))
	assert.Equal(t, "a; b; and 2 more", List([]string{"a", "b", "c", "d"}, 2, "; "))
}

func TestTheLastItemCountsTheOthers(t *testing.T) {
	assert.Equal(t, []string{"a", "b"}, Items([]string{"a", "b"}, 2))
	assert.Equal(t, []string{"a", "and 2 more"}, Items([]string{"a", "b", "c"}, 2))
	assert.Equal(t, []string{"and 3 more"}, Items([]string{"a", "b", "c"}, 1))
}

func TestTextsOfOthersBecomePartOfASentence(t *testing.T) {
	assert.Equal(t, "no such host", OneLine(" no\n\tsuch  host..\n"))
	assert.Equal(t, "Right.", Sentence(" Right. "))
	assert.Equal(t, "Right.", Sentence("Right"))
	assert.Empty(t, Sentence(" "))
}

func TestAnObjectIsNamedAsFarAsItIsKnown(t *testing.T) {
	assert.Equal(t, "Secret a/b", Object("Secret", "a", "b"))
	assert.Equal(t, "Namespace b", Object("Namespace", "", "b"))
	assert.Equal(t, "b", Object("", "", "b"))
	assert.Equal(t, "Secret", Object("Secret", "", ""))
}

func TestAValueOfOthersIsOneShortLine(t *testing.T) {
	assert.Equal(t, `"a\nb"`, Quote("a\nb"))
	assert.Equal(t, `"`+strings.Repeat("x", 100)+`"`, Quote(strings.Repeat("x", 100)))
	assert.Equal(t, `"`+strings.Repeat("x", 97)+`..."`, Quote(strings.Repeat("x", 101)))
}
