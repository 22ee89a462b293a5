// Command images takes pictures of the page of the plugin for the documents: "make page-images" runs it. With -all it
// takes each view, light, dark, and at the width of a phone, for a person who changes the page.
package main
