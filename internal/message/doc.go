// Package message bounds the text of conditions, Events and errors: the API takes messages of limited length, and a
// list of a thousand objects helps nobody.
package message
