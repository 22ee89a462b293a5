// Package raw makes the objects of an add-on from a folder of YAML files, which may be Go templates (package
// text/template).
//
// Every file in the folder and in the folders below it is used, in the order of the paths, and must end in .yaml, .yml
// or .json. A file may have several objects, separated by "---". Fields of "." are the values of the add-on, and those
// built in:
//
//   - ClusterName, AddonInstallNamespace and InstallMode (Default or Hosted); nothing overrides them.
//   - HubKubeConfigSecret, where the agent gets credentials, and ManagedKubeConfigSecret; values of the author override
//     them.
//
// Besides the functions of text/template there are notAfter, notBefore and issuer (of a certificate in PEM), base64,
// indent, load and regexMatch.
//
// An error names the file, the line and the cause. The result of an undefined field, "<no value>", is an error too; a
// condition such as {{ if .HTTPProxy }} may use an undefined field.
package raw
