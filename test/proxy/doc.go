// Package proxy stands before an API server and lies to its clients, in ways in which API servers, networks and load
// balancers go wrong. Programs that run behind it must not delete, approve, evict or overwrite what the true state does
// not ask for, and must agree with it soon after it has become honest.
//
// A Liar lies in the transport of a client. A Proxy has one, and stands before the API server of a sandbox. Its clients
// see an API server: it has the certificate, takes the client's certificate or token, and passes the identity on as a
// front proxy does, so that audit logs, rights and certificate requests are those of the client. The control plane must
// be started with sandbox.Options.FrontProxy.
//
// What a lie is (Lies):
//
//   - Refuse: 429, 500 or 503 instead of an answer, some times in a row.
//   - Lose: the request is carried out, and the connection ends before the answer.
//   - Stale: a list that may come from a cache (resourceVersion=0 or not older than a version) is an earlier one, as
//     from an API server that lags. Reads of the newest state are never stale: API servers do not lie about those.
//   - Late: every event of a watch comes late, in order.
//   - Twice: events of a watch come twice.
//   - Expire: a watch loses some events and ends with 410, as after a compaction.
//   - Hang: the answer to a watch is held up without end, as on a connection that is half open, until HangFor
//     has passed or the lies end.
//   - Cut: a watch ends without a word.
//   - Date: the Date of every answer is off.
//   - Stall: a request is not answered, as on a connection that is half open; it may have been carried out.
//   - Behind: a list that may come from a cache comes from a second API server that lags, with the state of the whole
//     API as it was then, and the watch that follows it is as late as that. A user has to tell the versions (Saw).
//   - Away: a proxy in between answers with 503, because it does not reach the API server, and its clock is off by up
//     to a month.
//   - Rate, Delay: all connections together carry so many bytes a second, and each packet comes so late.
//
// The last four need a real connection: DrawReal draws them, and Draw does not. The last one is for a Proxy only.
//
// Every draw comes from the seed, the user, the request and how often it was sent before, so the same seed lies alike
// as far as the clients send the same requests. Lists are never streamed; an API server may refuse that.
package proxy
