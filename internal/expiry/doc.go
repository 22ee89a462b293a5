// Package expiry tells when the certificates that a program holds end, as metrics by their kind.
//
// Who judges a certificate says what it found with Set, at each look; what is not said any more is forgotten. The
// metrics have no name of an object: of each kind they tell which certificate ends first, and how many should have been
// replaced (causes.Life). They count when they are asked, so that a certificate becomes late without another look.
package expiry
