// Package sign signs certificates on the hub for the custom signers of add-ons.
//
//   - sign.go: ReadAuthority reads the CA of a custom signer from a Secret, and Authority.Sign signs. Sign takes the
//     subject and the names of a certificate from the request that the hub expects, and copies nothing from the request
//     of the agent but the public key.
//   - serves.go: CheckServes checks whether the CA in a Secret serves an add-on. The owner of the Secret says so in
//     annotations.
package sign
