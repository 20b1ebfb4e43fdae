// SPDX-License-Identifier: Apache-2.0
#include "ci/file_flags.h"

#include <cstdint>

#include "ci/flags.h"

namespace lossgate::ci {
namespace {

void add_minimise(CLI::App& verb, FileFlags& flags) {
  MinimiseOptions& minimise = flags.minimise;
  verb.add_option("file", minimise.file, "A .case or .safetensors file")->required();
  verb.add_option("--out", minimise.out, "The file to write, FILE.min.case unless said");
  verb.add_flag("--overwrite", minimise.overwrite, "Even if there is one");
  verb.add_option("--tries", minimise.tries, "How many cases may be tried")
      ->check(whole(1, 1'000'000'000))
      ->type_name("N");
  add_configs(verb, flags.configs);
  add_filters(verb, minimise.filters);
}

void add_emissions(CLI::App& verb, EmitOptions& emit) {
  const auto file = [&](const char* flag, std::string& path, const char* text) {
    verb.add_option(flag, path, text)->type_name("FILE");
  };
  file("--emit-test", emit.test, "Write a pytest function that needs torch and the function alone");
  file("--emit-py", emit.script, "Write the same as a script");
  file("--emit-issue", emit.issue, "Write a report in Markdown, with the script");
  verb.add_flag("--overwrite", emit.overwrite, "Even if there is one");
}

void add_share(CLI::App& verb, FileFlags& flags) {
  ShareOptions& share = flags.share;
  verb.add_option("file", share.file, "A .case or .safetensors file")->required();
  verb.add_option("--out", share.out, "The file to write, FILE.share.case unless said");
  verb.add_flag("--overwrite", share.overwrite, "Even if there is one");
  add_configs(verb, flags.configs);
  add_filters(verb, share.filters);
}

void add_explain(CLI::App& verb, FileFlags& flags) {
  ExplainOptions& explain = flags.explain;
  verb.add_option("file", explain.file, "What watch.py wrote")->required();
  verb.add_option("--fn", explain.function,
                  "The loss: FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION");
  verb.add_option("--python", explain.interpreter, "An interpreter that has torch, for --fn");
  verb.add_option("--device", explain.device, "Where to run --fn, such as cuda; cpu unless said");
  add_configs(verb, explain.configs);
  verb.get_option("--config")->description("The lossgate.toml that has the loss, in place of --fn");
  verb.add_option("--impl", explain.implementation, "Its subject, where there are several")
      ->type_name("NAME");
}

}  // namespace

void add_file_verbs(const AddVerb& verb, FileFlags& flags) {
  CLI::App* replay = verb("replay", "Show everything that one case file shows", [&] {
    flags.replay.filters.subjects = subject_files_or_those_here(flags.configs);
    return run_replay(flags.replay);
  });
  replay->add_option("file", flags.replay.file, "A .case or .safetensors file")->required();
  add_configs(*replay, flags.configs);
  add_filters(*replay, flags.replay.filters);
  replay
      ->add_option("--times", flags.replay.times,
                   "Ask so often, in one process, and say how often it holds")
      ->check(whole(1, 1'000'000'000))
      ->type_name("N");
  add_emissions(*replay, flags.replay.emit);
  add_minimise(*verb("minimise", "Make the case of a failure as simple as it goes",
                     [&] {
                       flags.minimise.filters.subjects = subject_files_or_those_here(flags.configs);
                       return run_minimise(flags.minimise);
                     }),
               flags);
  add_share(*verb("share", "Leave of a case what others need to see its failure, and list it",
                  [&] {
                    flags.share.filters.subjects = subject_files_or_those_here(flags.configs);
                    return run_share(flags.share);
                  }),
            flags);
  add_explain(*verb("explain", "Say whether the loss is to blame for what a training run died of",
                    [&] { return run_explain(flags.explain); }),
              flags);
}

}  // namespace lossgate::ci
