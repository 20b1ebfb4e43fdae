// SPDX-License-Identifier: Apache-2.0
#include "ci/fuzz_flags.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "ci/flags.h"

namespace lossgate::ci {

void add_fuzz(CLI::App& verb, FuzzFlags& flags) {
  FuzzOptions& fuzz = flags.options;
  fuzz.campaign.workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  verb.add_option("losses,--loss", fuzz.plan.filters.losses, "Only these losses")
      ->delimiter(',')
      ->type_name("LOSS");
  verb.add_option("--budget", flags.budget,
                  "When to stop: 8h, 20m, 90s, '200000 cases'; +8h: from now on; 10m unless said");
  verb.add_option("--workers,--jobs", fuzz.campaign.workers, "Processes, one per core unless said")
      ->check(whole(1, 1024))
      ->type_name("N");
  verb.add_option("--out", fuzz.out,
                  "Folder of the campaign, campaign unless said; goes on from what is there");
  add_names(verb, "--impl", fuzz.plan.filters.implementations,
            "Only these implementations; faulty ones are searched if named");
  add_names(verb, "--property", fuzz.plan.filters.properties, "Only these properties");
  add_names(verb, "--dtype", fuzz.plan.filters.dtypes, "Only these dtypes: f64, f32, f16, bf16");
  add_configs(verb, flags.configs);
  add_names(verb, "--corpus", fuzz.corpora, "Folders of .case files to begin with", "FOLDER");
  verb.add_option("--seed", fuzz.plan.seed, "Where all draws come from")
      ->check(whole(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  verb.add_option("--shard", flags.shard, "I/N: the share of one of N machines");
  verb.add_option("--timeout", fuzz.campaign.timeout_s,
                  "Seconds for one call of an implementation; a lossgate.toml says its own")
      ->check(CLI::Range(0.1, 86400.0).description(""))
      ->type_name("SECONDS");
  verb.add_option("--memory", fuzz.campaign.memory_mib,
                  "MiB that a worker may allocate, 4096 unless said; 0: any; what lossgate.toml\n"
                  "brings has megabytes = N there")
      ->check(whole(0, 1U << 24))
      ->type_name("MIB");
  verb.add_option("--profile", flags.profile,
                  "What cases: hostile, soak; benign leaves out special values");
  verb.add_flag("--first", fuzz.campaign.first, "Stop at the first red finding");
  verb.add_flag("--blind", flags.blind, "Draw every case anew, guided by nothing");
  verb.add_option("--fail-on", flags.fail_on,
                  "The rarest findings that are red: ordinary, rare, adversarial");
  add_accepted(verb, flags.waivers, flags.baseline);
}

FuzzOptions fuzz_options(FuzzFlags& flags) {
  FuzzOptions& options = flags.options;
  options.campaign.budget = parse_budget(flags.budget);
  options.campaign.shard = parse_shard(flags.shard);
  options.campaign.guided = !flags.blind;
  options.plan.profile = parsed("profile", flags.profile, fuzz::parse_profile(flags.profile),
                                names_of(fuzz::kAllProfiles));
  const auto fail_on = parsed("grade", flags.fail_on, properties::parse_grade(flags.fail_on),
                              names_of(properties::kAllGrades));
  options.campaign.policy = read_policy(fail_on, flags.waivers, flags.baseline);
  options.campaign.policy.names_idle = false;
  options.plan.filters.subjects = subject_files_or_those_here(flags.configs);
  options.plan.cases = 0;
  return options;
}

void add_merge(CLI::App& verb, MergeOptions& merge) {
  verb.add_option("folders", merge.folders, "Folders of campaigns")
      ->required()
      ->type_name("FOLDER");
  verb.add_option("--out", merge.out, "The folder to write, a new one")->required();
}

}  // namespace lossgate::ci
